/**
 * Run bodies of the LangGraph API (contracts, "Run options"). An option named here is honoured; every other known
 * option is `unsupported_option`, an unknown one `invalid_request`: nothing is accepted and ignored.
 */
import { z } from "zod";
import { CANCEL_ACTIONS, MULTITASK_STRATEGIES } from "../domain/run/multitask.ts";
import { RUN_STOP_REASONS } from "../domain/run/stop-reason.ts";
import { clientIdSchema } from "./identifiers.ts";
import { wholeNumber } from "./query-number.ts";
import { breakpointsSchema, runCheckpointSchema, runCommandSchema } from "./run-start.ts";
import { metadataSchema } from "./threads.ts";

export const RUN_STATUSES = ["pending", "running", "success", "error", "timeout", "interrupted"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

export const STREAM_MODES = [
  "values",
  "messages-tuple",
  "messages",
  "updates",
  "custom",
  "events",
  "debug",
  "tasks",
  "checkpoints",
] as const;
export type StreamMode = (typeof STREAM_MODES)[number];

/** One, or a list. */
export const streamModesSchema = z.union([z.enum(STREAM_MODES), z.array(z.enum(STREAM_MODES)).min(1)], {
  error: `must be one of ${STREAM_MODES.map((mode) => `"${mode}"`).join(", ")}, or a list of them`,
});

/** Options of the reference API that Deputy does not honour yet: refused by name. */
export const UNSUPPORTED_RUN_OPTIONS = ["feedback_keys"] as const;

/** Values of the reference API that an honoured option does not take yet: refused by name, like the options above. */
export const UNSUPPORTED_RUN_VALUES: Readonly<Record<string, readonly (string | boolean)[]>> = {
  stream_mode: ["tools", "lifecycle"],
  durability: ["exit"],
  checkpoint_during: [false],
  on_completion: ["delete"],
};

/** A month: a delayed run keeps its thread busy, and an alarm of its object. */
export const AFTER_SECONDS_MAX = 2_592_000;

/** Of a run, and of an assistant as its runs' default. */
export const runConfigSchema = z.strictObject({
  configurable: metadataSchema.optional(),
  recursion_limit: z.int().min(1).max(10_000).optional(),
  tags: z.array(z.string()).max(100).optional(),
  /** Reaches the graph's callbacks and checkpoints; the run's own `metadata` wins. */
  metadata: metadataSchema.optional(),
});

export const createRunBodySchema = z.strictObject({
  assistant_id: clientIdSchema,
  input: z.record(z.string(), z.unknown()).nullish(),
  /** Instead of input. */
  command: runCommandSchema.nullish(),
  /** The checkpoint to start from; absent for the newest. */
  checkpoint: runCheckpointSchema.nullish(),
  checkpoint_id: z.string().nullish(),
  interrupt_before: breakpointsSchema.nullish(),
  interrupt_after: breakpointsSchema.nullish(),
  /** Always so: an answer to what nobody asks is refused. `false` with an answer is refused by name. */
  strict_resume: z.boolean().nullish(),
  config: runConfigSchema.nullish(),
  context: metadataSchema.nullish(),
  metadata: metadataSchema.nullish(),
  stream_mode: streamModesSchema
    .default("values")
    .transform((mode): StreamMode[] => (Array.isArray(mode) ? [...new Set(mode)] : [mode])),
  stream_subgraphs: z.boolean().nullish(),
  stream_resumable: z.boolean().nullish(),
  on_disconnect: z.enum(["continue", "cancel"]).default("continue"),
  /** Told of the run's end; where it may lead is checked by the thread's object, at acceptance and at every attempt. */
  webhook: z.string().nullish(),
  if_not_exists: z.enum(["reject", "create"]).default("reject"),
  /** `async` is honoured as `sync`; `exit` is refused. */
  durability: z.enum(["sync", "async"]).nullish(),
  /** The older name of `durability`: each step's checkpoint is stored before the next step. */
  checkpoint_during: z.literal(true).nullish(),
  /** A stateless run's thread is kept: docs/decisions/stateless-runs.md. */
  on_completion: z.enum(["keep"]).nullish(),
  /** What happens when the thread has an active run. */
  multitask_strategy: z.enum(MULTITASK_STRATEGIES).default("reject"),
  /** The run waits as `pending` for so long. */
  after_seconds: z.number().min(0).max(AFTER_SECONDS_MAX).nullish(),
});
export type CreateRunBody = z.output<typeof createRunBodySchema>;

const tokenCountsSchema = z.object({
  /** Answers of the model these counts are of. */
  answers: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  total_tokens: z.int(),
  cache_read_tokens: z.int().optional(),
});

const callerUsageSchema = z.object({
  /** `lead_agent` or `subagent:<name>`. */
  caller: z.string(),
  model_name: z.string().nullable(),
  reported: tokenCountsSchema.optional(),
  /** Deputy's own, for answers whose provider reported nothing. */
  estimated: tokenCountsSchema.optional(),
});

export const runSchema = z
  .object({
    run_id: z.string(),
    thread_id: z.string(),
    assistant_id: z.string(),
    created_at: z.string(),
    updated_at: z.string(),
    status: z.enum(RUN_STATUSES),
    metadata: metadataSchema,
    multitask_strategy: z.string(),
    /** Why the run was ended, in the words of whoever ended it. */
    cancel_reason: z.string().nullish(),
    kwargs: z.record(z.string(), z.unknown()).optional(),
    /** Why the run is not a success. */
    error: z.object({ error: z.string(), message: z.string() }).nullish(),
    /** The limit that held the run back, whatever its status. */
    stop_reason: z.enum(RUN_STOP_REASONS).nullish(),
    /** What the run was accepted with and stays with; null for a graph without versions. */
    assistant_version: z.int().nullish(),
    graph_version: z.string().nullish(),
    /** Tokens by caller and model, once the run has ended. */
    usage: z.array(callerUsageSchema).optional(),
  })
  .meta({ ref: "Run" });
export type Run = z.infer<typeof runSchema>;

/** What `select` left of a run in a list. */
export const listedRunSchema = runSchema.partial().meta({ ref: "ListedRun" });

const runFieldSchema = runSchema.keyof();

export const listRunsQuerySchema = z.strictObject({
  limit: wholeNumber({ min: 1, max: 1_000 }).default(10),
  offset: wholeNumber({ min: 0, max: Number.MAX_SAFE_INTEGER }).default(0),
  status: z.enum(RUN_STATUSES).optional(),
  select: z
    .union([runFieldSchema, z.array(runFieldSchema).min(1)], {
      error: `must be one of ${runFieldSchema.options.join(", ")}, or a list of them`,
    })
    .optional()
    .transform((given) => (given === undefined ? undefined : [given].flat())),
});
export type ListRunsQuery = Omit<z.output<typeof listRunsQuerySchema>, "select">;

/** Named in one request to cancel: each is a transaction of its thread's object. */
const CANCEL_RUN_IDS_MAX = 1_000;

const CANCEL_REASON_CHARS_MAX = 1_000;

export const cancelActionSchema = z.enum(CANCEL_ACTIONS).default("interrupt");
export const cancelReasonSchema = z.string().max(CANCEL_REASON_CHARS_MAX).optional();

/** Runs of a thread by their ids, or of one thread or of all by their status. */
export const cancelRunsBodySchema = z
  .strictObject({
    thread_id: clientIdSchema.optional(),
    run_ids: z.array(clientIdSchema).min(1).max(CANCEL_RUN_IDS_MAX).optional(),
    status: z.enum(["pending", "running", "all"]).optional(),
  })
  .refine(({ run_ids, status }) => (run_ids === undefined) !== (status === undefined), {
    path: ["run_ids"],
    message: "give run_ids or status, one of the two",
  })
  .refine(({ thread_id, run_ids }) => run_ids === undefined || thread_id !== undefined, {
    path: ["thread_id"],
    message: "required with run_ids",
  });
