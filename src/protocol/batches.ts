/**
 * Batch bodies (contracts, "Batches"). Sizes follow delegation-behaviour 1.9; limits that depend on configuration
 * (`max_items`, windows, attempts) are checked at submit, where the configuration is at hand.
 */
import { z } from "zod";
import { wholeNumber } from "./query-number.ts";
import {
  BATCH_FILES_MAX,
  BATCH_TITLE_CHARS_MAX,
  ITEM_KEY_CHARS_MAX,
  ITEM_PROMPT_CHARS_MAX,
} from "../domain/batch/batch-limits.ts";

export const ITEM_STATUSES = ["pending", "leased", "completed", "failed", "cancelled"] as const;

export const createBatchBodySchema = z.strictObject({
  title: z.string().trim().min(1).max(BATCH_TITLE_CHARS_MAX),
  subagent_type: z.string().min(1).max(64),
  items: z
    .array(
      z.strictObject({
        key: z.string().trim().min(1).max(ITEM_KEY_CHARS_MAX),
        prompt: z.string().min(1).max(ITEM_PROMPT_CHARS_MAX),
      }),
    )
    .min(1),
  files: z.array(z.string().min(1).max(1_024)).max(BATCH_FILES_MAX).optional(),
  max_live_items: z.int().min(1).optional(),
  max_running_items: z.int().min(1).optional(),
  max_attempts: z.int().min(1).optional(),
  timeout_seconds: z.int().min(1).optional(),
});
export type CreateBatchBody = z.output<typeof createBatchBodySchema>;

export const batchCountsSchema = z
  .object({
    pending: z.int(),
    leased: z.int(),
    completed: z.int(),
    failed: z.int(),
    cancelled: z.int(),
  })
  .meta({ ref: "BatchCounts" });

export const batchSchema = z
  .object({
    batch_id: z.string(),
    thread_id: z.string(),
    title: z.string(),
    subagent_type: z.string(),
    status: z.enum(["running", "completed", "cancelled"]),
    total_items: z.int(),
    counts: batchCountsSchema,
    max_live_items: z.int(),
    max_running_items: z.int(),
    max_attempts: z.int(),
    timeout_seconds: z.int(),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ ref: "Batch" });
export type Batch = z.infer<typeof batchSchema>;

export const usageSchema = z.object({ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() });

export const batchItemSchema = z
  .object({
    ordinal: z.int(),
    key: z.string(),
    status: z.enum(ITEM_STATUSES),
    attempts: z.int(),
    deferrals: z.int(),
    /** The first `preview_chars` of the result. */
    preview: z.string().nullable(),
    error: z.string().nullable(),
  })
  .meta({ ref: "BatchItem" });
export type BatchItem = z.infer<typeof batchItemSchema>;

/** One line of `results.jsonl`. */
export const batchResultLineSchema = z
  .object({
    key: z.string(),
    status: z.enum(["completed", "failed", "cancelled"]),
    result: z.string().nullable(),
    error: z.string().nullable(),
    attempts: z.int(),
    deferrals: z.int(),
    usage: usageSchema.nullable(),
    /** Files the item wrote under `outputs/`: path → text, or base64 where it is not UTF-8. */
    outputs: z.record(z.string(), z.string()).optional(),
  })
  .meta({ ref: "BatchResultLine" });
export type BatchResultLine = z.infer<typeof batchResultLineSchema>;

export const listItemsQuerySchema = z.strictObject({
  status: z.enum(ITEM_STATUSES).optional(),
  after_ordinal: wholeNumber({ min: -1, max: Number.MAX_SAFE_INTEGER }).default(-1),
  limit: wholeNumber({ min: 1, max: 1_000 }).default(100),
});

/** `progress` frames of `GET /batches/{b}/events`. */
export const batchProgressSchema = batchSchema.pick({ batch_id: true, status: true, total_items: true, counts: true });
export type BatchProgress = z.infer<typeof batchProgressSchema>;

/** `Idempotency-Key` of a create: printable ASCII, long enough for any digest or URN. */
export const submissionKeySchema = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, "must be 1 to 255 printable ASCII characters");
