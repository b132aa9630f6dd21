/** Thread bodies of the LangGraph API (langgraph-api.md B3): requests as zod shapes, responses as types and shapes. */
import { z } from "zod";
import { clientIdSchema } from "./identifiers.ts";

export const metadataSchema = z.record(z.string(), z.unknown());

export const createThreadBodySchema = z.strictObject({
  thread_id: clientIdSchema.optional(),
  metadata: metadataSchema.default({}),
  if_exists: z.enum(["raise", "do_nothing"]).default("raise"),
});
export type CreateThreadBody = z.output<typeof createThreadBodySchema>;

/** Options of the reference API, by body, that Deputy does not honour yet: refused by name. */
export const UNSUPPORTED_THREAD_OPTIONS = {
  create: ["supersteps", "ttl"],
  patch: ["ttl"],
  search: ["select", "values", "extract"],
  state: ["select"],
} as const;

export const patchThreadBodySchema = z.strictObject({ metadata: metadataSchema });

export const THREAD_STATUSES = ["idle", "busy", "interrupted", "error"] as const;
export type ThreadStatus = (typeof THREAD_STATUSES)[number];

export const searchThreadsBodySchema = z.strictObject({
  metadata: metadataSchema.optional(),
  ids: z.array(clientIdSchema).max(1_000).optional(),
  status: z.enum(THREAD_STATUSES).optional(),
  limit: z.int().min(1).max(1_000).default(10),
  offset: z.int().min(0).default(0),
  sort_by: z.enum(["thread_id", "status", "created_at", "updated_at"]).default("created_at"),
  sort_order: z.enum(["asc", "desc"]).default("desc"),
});
export type SearchThreadsBody = z.output<typeof searchThreadsBodySchema>;

export const countThreadsBodySchema = z.strictObject({
  metadata: metadataSchema.optional(),
  status: z.enum(THREAD_STATUSES).optional(),
});
export type CountThreadsBody = z.output<typeof countThreadsBodySchema>;

export const interruptSchema = z.object({ id: z.string().optional(), value: z.unknown() });

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
  })
  .meta({ ref: "Thread" });
export type Thread = z.infer<typeof threadSchema>;

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
        checkpoint: checkpointRefSchema.nullable(),
        state: z.unknown(),
        result: z.unknown().optional(),
        path: z.array(z.unknown()).optional(),
      }),
    ),
  })
  .meta({ ref: "ThreadState" });
export type ThreadStateBody = z.infer<typeof threadStateSchema>;

export const updateStateBodySchema = z.strictObject({
  values: z.union([z.record(z.string(), z.unknown()), z.array(z.record(z.string(), z.unknown()))]).nullish(),
  checkpoint: checkpointRefSchema.partial().nullish(),
  checkpoint_id: z.string().nullish(),
  as_node: z.string().optional(),
});
export type UpdateStateBody = z.output<typeof updateStateBodySchema>;

/** `POST /threads/{t}/state/checkpoint`: the root graph's state at one checkpoint. */
export const stateAtCheckpointBodySchema = z.strictObject({
  checkpoint: checkpointRefSchema.partial().extend({ checkpoint_id: z.string().min(1).max(128) }),
  subgraphs: z.boolean().nullish(),
});

export const historyBodySchema = z.strictObject({
  limit: z.int().min(1).max(1_000).default(10),
  before: z
    .union([
      z.string(),
      z.looseObject({ configurable: z.looseObject({ checkpoint_id: z.string() }) }),
      checkpointRefSchema.partial(),
    ])
    .nullish(),
  metadata: metadataSchema.nullish(),
  checkpoint: checkpointRefSchema.partial().nullish(),
});
export type HistoryBody = z.output<typeof historyBodySchema>;

/**
 * Metadata key of a stateless run's thread. Such a run gets a thread of its own, so that it is durable and resumable
 * like any other; the mark keeps the thread out of searches and counts that do not ask for it.
 */
export const STATELESS_MARK = "deputy_stateless";
