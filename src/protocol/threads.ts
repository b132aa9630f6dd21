/** Thread bodies of the LangGraph API (langgraph-api.md B3): requests as zod shapes, responses as types and shapes. */
import { z } from "zod";
import { clientIdSchema } from "./identifiers.ts";
import { timeFilters } from "./time-filters.ts";

export const metadataSchema = z.record(z.string(), z.unknown());

/** Ten years: a longer life is none that a clock of today should promise. */
const TTL_MINUTES_MAX = 5_256_000;

const ttlMinutesSchema = z.number().min(1).max(TTL_MINUTES_MAX);

/** After how many minutes the thread is deleted. A number is what the object's `ttl` says. */
const ttlSchema = z
  .union([ttlMinutesSchema, z.strictObject({ ttl: ttlMinutesSchema, strategy: z.literal("delete").nullish() })], {
    error: `must be minutes from 1 to ${TTL_MINUTES_MAX}, or {"ttl": minutes, "strategy": "delete"}`,
  })
  .transform((given) => ({ ttl: typeof given === "number" ? given : given.ttl }));
export type ThreadTtlBody = z.output<typeof ttlSchema>;

/** Each is a checkpoint of the thread before it is there. */
const SUPERSTEPS_MAX = 500;
const SUPERSTEP_UPDATES_MAX = 100;

const superstepSchema = z.strictObject({
  updates: z
    .array(
      z.strictObject({
        values: z
          .union([z.record(z.string(), z.unknown()), z.array(z.record(z.string(), z.unknown()))], {
            error: "must be an object, or a list of objects",
          })
          .nullish(),
        /** A node's, or `__start__` for what a run would bring. */
        as_node: z.string().min(1),
        command: z.null({ error: "is not supported: say what the step wrote as values" }).optional(),
      }),
    )
    .min(1)
    .max(SUPERSTEP_UPDATES_MAX),
});
export type SuperstepBody = z.output<typeof superstepSchema>;

export const createThreadBodySchema = z.strictObject({
  thread_id: clientIdSchema.optional(),
  metadata: metadataSchema.default({}),
  if_exists: z.enum(["raise", "do_nothing"]).default("raise"),
  ttl: ttlSchema.optional(),
  /** What happened on the thread before it is there, oldest first; the metadata's `graph_id` says by which graph. */
  supersteps: z.array(superstepSchema).max(SUPERSTEPS_MAX).optional(),
});
export type CreateThreadBody = z.output<typeof createThreadBodySchema>;

/** Options of the reference API, by body, that Deputy does not honour yet: refused by name. */
export const UNSUPPORTED_THREAD_OPTIONS = {
  search: ["values"],
  count: ["values"],
} as const;

/** What a list does not know of a thread: it is read one thread at a time. */
export const UNLISTED_THREAD_VALUES = {
  select: ["values", "interrupts", "config", "context"],
  sort_by: ["state_updated_at"],
} as const;

export const patchThreadBodySchema = z
  .strictObject({ metadata: metadataSchema.optional(), ttl: ttlSchema.optional() })
  .refine(({ metadata, ttl }) => metadata !== undefined || ttl !== undefined, {
    path: ["metadata"],
    message: "give metadata, ttl or both",
  });

/** What a thread is asked for beside what it always has. */
const THREAD_INCLUDES = ["ttl"] as const;
const threadIncludeSchema = z.enum(THREAD_INCLUDES);
export const getThreadQuerySchema = z.strictObject({
  include: z
    .union([threadIncludeSchema, z.array(threadIncludeSchema).min(1)], {
      error: `must be one of ${THREAD_INCLUDES.map((name) => `"${name}"`).join(", ")}, or a list of them`,
    })
    .optional()
    .transform((given): readonly ThreadInclude[] => [given ?? []].flat()),
});
export type ThreadInclude = z.output<typeof threadIncludeSchema>;

/** Each id is a request to an object, and one of ours may make 1,000. */
const PRUNED_THREADS_MAX = 500;
export const pruneThreadsBodySchema = z.strictObject({
  thread_ids: z.array(clientIdSchema).min(1).max(PRUNED_THREADS_MAX),
  strategy: z.enum(["delete", "keep_latest"]).default("delete"),
});

/** More than a state has fields and channels a client names. */
const SELECT_FIELDS_MAX = 100;

export const THREAD_STATUSES = ["idle", "busy", "interrupted", "error"] as const;
export type ThreadStatus = (typeof THREAD_STATUSES)[number];

/** What a list knows of a thread; state is in the thread's object. */
const THREAD_FIELDS = ["thread_id", "created_at", "updated_at", "metadata", "status"] as const;

/** As many as a list shows columns. */
const EXTRACTS_MAX = 20;
const EXTRACT_CHARS_MAX = 256;
const EXTRACT_PATH = /^metadata(\.[^.[\]]+|\[-?\d{1,6}\])+$/;

/** Name → a place in the thread's metadata: `metadata.a.b[0]`, from the end with `[-1]`. */
const extractSchema = z
  .record(
    z.string().min(1).max(EXTRACT_CHARS_MAX),
    z.string().max(EXTRACT_CHARS_MAX).regex(EXTRACT_PATH, {
      message: "must be a place in the metadata, such as metadata.title or metadata.tags[0]: lists have no values",
    }),
  )
  .refine((paths) => Object.keys(paths).length <= EXTRACTS_MAX, { message: `at most ${EXTRACTS_MAX} places` });

export const searchThreadsBodySchema = z.strictObject({
  metadata: metadataSchema.optional(),
  ids: z.array(clientIdSchema).max(1_000).optional(),
  status: z.enum(THREAD_STATUSES).optional(),
  ...timeFilters,
  select: z.array(z.enum(THREAD_FIELDS)).min(1).max(SELECT_FIELDS_MAX).optional(),
  extract: extractSchema.optional(),
  limit: z.int().min(1).max(1_000).default(10),
  offset: z.int().min(0).default(0),
  sort_by: z.enum(["thread_id", "status", "created_at", "updated_at"]).default("created_at"),
  sort_order: z.enum(["asc", "desc"]).default("desc"),
});
export type SearchThreadsBody = z.output<typeof searchThreadsBodySchema>;

export const countThreadsBodySchema = z.strictObject({
  metadata: metadataSchema.optional(),
  status: z.enum(THREAD_STATUSES).optional(),
  ...timeFilters,
});
export type CountThreadsBody = z.output<typeof countThreadsBodySchema>;

export const interruptSchema = z.object({ id: z.string().optional(), value: z.unknown() });

const threadTtlSchema = z.object({ strategy: z.literal("delete"), ttl_minutes: z.number(), expires_at: z.string() });
export type ThreadTtlView = z.infer<typeof threadTtlSchema>;

export const threadSchema = z
  .object({
    thread_id: z.string(),
    created_at: z.string(),
    updated_at: z.string(),
    state_updated_at: z.string().optional(),
    metadata: metadataSchema,
    status: z.enum(THREAD_STATUSES),
    /** `null` in search results: state lives in the thread's object and is fetched one thread at a time. */
    values: z.record(z.string(), z.unknown()).nullable(),
    interrupts: z.record(z.string(), z.array(interruptSchema)),
    /** With `include=ttl`: when the thread is deleted; null for never. */
    ttl: threadTtlSchema.nullish(),
  })
  .meta({ ref: "Thread" });
export type Thread = z.infer<typeof threadSchema>;

/** What `select` left of a thread in a list, and what `extract` asked for. */
export const listedThreadSchema = threadSchema
  .partial()
  .extend({ extracted: z.record(z.string(), z.unknown()).optional() })
  .meta({ ref: "ListedThread" });
export type ListedThread = z.infer<typeof listedThreadSchema>;

export const checkpointRefSchema = z.object({
  thread_id: z.string(),
  checkpoint_ns: z.string(),
  checkpoint_id: z.string().nullish(),
  checkpoint_map: z.record(z.string(), z.unknown()).nullish(),
});
export type CheckpointRef = z.infer<typeof checkpointRefSchema>;

export const threadStateSchema = z
  .object({
    values: z.record(z.string(), z.unknown()),
    next: z.array(z.string()),
    checkpoint: checkpointRefSchema.nullable(),
    metadata: metadataSchema.nullish(),
    created_at: z.string().nullable(),
    parent_checkpoint: checkpointRefSchema.nullable(),
    tasks: z.array(
      z.object({
        id: z.string(),
        name: z.string(),
        error: z.string().nullable(),
        interrupts: z.array(interruptSchema),
        /** Where the task's subgraph stands, unless its state was asked for. */
        checkpoint: checkpointRefSchema.nullable(),
        /** The subgraph's ThreadState, with `subgraphs`. */
        state: z.unknown(),
        result: z.unknown(),
        path: z.array(z.unknown()),
      }),
    ),
    /** Of all tasks; only where `select` names it. */
    interrupts: z.array(interruptSchema).optional(),
  })
  .meta({ ref: "ThreadState" });
export type ThreadStateBody = z.infer<typeof threadStateSchema>;

/** What `select` left of a state. */
export type SelectedState = Partial<ThreadStateBody>;

const STATE_FIELDS = [
  "values",
  "next",
  "tasks",
  "checkpoint",
  "metadata",
  "created_at",
  "parent_checkpoint",
  "interrupts",
] as const;
const VALUES_KEY = /^values\../;

const stateFieldSchema = z
  .string()
  .refine((field) => STATE_FIELDS.some((known) => known === field) || VALUES_KEY.test(field), {
    message: `must be one of ${STATE_FIELDS.join(", ")} or values.<key>`,
  });
export const stateSelectSchema = z.array(stateFieldSchema).min(1).max(SELECT_FIELDS_MAX);
/** In a query the name repeats. */
export const stateSelectQuerySchema = z
  .union([stateFieldSchema, stateSelectSchema], {
    error: `must be one of ${STATE_FIELDS.join(", ")} or values.<key>, at most ${SELECT_FIELDS_MAX} of them`,
  })
  .transform((given) => (typeof given === "string" ? [given] : given));

/** Bounds a namespace's text: levels are bounded by the graphs, names are not. */
const CHECKPOINT_NS_CHARS_MAX = 2_048;
const CHECKPOINT_ID_CHARS_MAX = 128;
export const checkpointIdSchema = z.string().min(1).max(CHECKPOINT_ID_CHARS_MAX);
const checkpointNsSchema = z.string().max(CHECKPOINT_NS_CHARS_MAX);

/** A checkpoint as a request names it: of the root, or of a subgraph. */
const askedCheckpointSchema = z.strictObject({
  thread_id: z.string().nullish(),
  checkpoint_ns: checkpointNsSchema.nullish(),
  checkpoint_id: checkpointIdSchema.nullish(),
  /** Ids of the parents' checkpoints; the namespace and the id say the same. */
  checkpoint_map: z.record(z.string(), z.unknown()).nullish(),
});

export const updateStateBodySchema = z.strictObject({
  values: z
    .union([z.record(z.string(), z.unknown()), z.array(z.record(z.string(), z.unknown()))], {
      error: "must be an object, or a list of objects",
    })
    .nullish(),
  checkpoint: askedCheckpointSchema.nullish(),
  checkpoint_id: checkpointIdSchema.nullish(),
  as_node: z.string().optional(),
});
export type UpdateStateBody = z.output<typeof updateStateBodySchema>;

/** `PATCH /threads/{t}/state`: merged into the metadata of the newest checkpoint. */
export const patchStateBodySchema = z.strictObject({ metadata: metadataSchema });

/** `POST /threads/{t}/state/checkpoint`: the state of the root or of a subgraph, at a checkpoint or the newest. */
export const stateAtCheckpointBodySchema = z.strictObject({
  checkpoint: askedCheckpointSchema,
  subgraphs: z.boolean().nullish(),
  select: stateSelectSchema.nullish(),
});

/** Which state a client reads. */
export interface StateQuery {
  readonly checkpoint_id?: string | undefined;
  /** A subgraph's namespace; absent for the root. */
  readonly checkpoint_ns?: string | undefined;
  readonly subgraphs?: boolean | undefined;
  readonly select?: readonly string[] | undefined;
}

export const historyBodySchema = z.strictObject({
  limit: z.int().min(1).max(1_000).default(10),
  before: z
    .union(
      [
        checkpointIdSchema,
        z.looseObject({ configurable: z.looseObject({ checkpoint_id: checkpointIdSchema }) }),
        askedCheckpointSchema.extend({ checkpoint_id: checkpointIdSchema }),
      ],
      { error: "must be a checkpoint's id, or an object with its checkpoint_id" },
    )
    .nullish(),
  metadata: metadataSchema.nullish(),
  checkpoint: askedCheckpointSchema.nullish(),
  select: stateSelectSchema.nullish(),
});
export type HistoryBody = z.output<typeof historyBodySchema>;

/**
 * Metadata key of a stateless run's thread. Such a run gets a thread of its own, so that it is durable and resumable
 * like any other; the mark keeps the thread out of searches and counts that do not ask for it.
 */
export const STATELESS_MARK = "deputy_stateless";
