/**
 * The run event log's record (delegation-behaviour Appendix B): what the outbox holds, D1 stores and
 * `GET /threads/{t}/runs/{r}/events` returns. Types, categories and required fields are public.
 */
import { z } from "zod";
import { wholeNumber } from "./query-number.ts";

export type RunEventCategory = "trace" | "outputs" | "error" | "message" | "subagent" | "batch" | "middleware";

export interface RunEvent {
  /** Gap-free and strictly increasing per thread, from 1. */
  readonly seq: number;
  readonly run_id: string;
  /** At most 32 characters. */
  readonly event_type: string;
  readonly category: RunEventCategory;
  readonly content: unknown;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** UTC ISO with Z. */
  readonly created_at: string;
}

/** An event before the thread gave it a number. */
export type RunEventDraft = Omit<RunEvent, "seq" | "created_at">;

/** A row of the log as HTTP returns it. Readers ignore types and fields they do not know. */
export const runEventRowSchema = z
  .object({
    thread_id: z.string(),
    run_id: z.string(),
    seq: z.int().min(1),
    event_type: z.string().max(32),
    category: z.string().max(16),
    content: z.unknown(),
    metadata: z.record(z.string(), z.unknown()),
    created_at: z.string(),
  })
  .meta({ ref: "RunEvent" });
export type RunEventRow = z.infer<typeof runEventRowSchema>;

/** A run's page: large enough for a card's whole history, small enough to hold in memory. */
const EVENTS_LIMIT_MAX = 2_000;
const EVENTS_LIMIT_DEFAULT = 500;
const MESSAGES_LIMIT_MAX = 200;
const MESSAGES_LIMIT_DEFAULT = 50;
/** More types than exist, so that any real filter fits. */
const EVENT_TYPES_MAX = 64;

const seqSchema = wholeNumber({ min: 0, max: Number.MAX_SAFE_INTEGER });

export const listRunEventsQuerySchema = z.strictObject({
  after_seq: seqSchema.default(0).describe("Rows with a greater sequence number only."),
  task_id: z.string().min(1).max(128).optional().describe("Rows of one delegation only."),
  event_types: z
    .string()
    .max(EVENT_TYPES_MAX * 33)
    .transform((list) =>
      list
        .split(",")
        .map((type) => type.trim())
        .filter((type) => type !== ""),
    )
    .optional()
    .describe("Comma-separated event types."),
  limit: wholeNumber({ min: 1, max: EVENTS_LIMIT_MAX }).default(EVENTS_LIMIT_DEFAULT),
});
export type ListRunEventsQuery = z.output<typeof listRunEventsQuerySchema>;

/** The feed of a page that scrolls back. */
export const messagePageQuerySchema = z.strictObject({
  limit: wholeNumber({ min: 1, max: MESSAGES_LIMIT_MAX }).default(MESSAGES_LIMIT_DEFAULT),
  before_seq: seqSchema.optional().describe("The last rows before this sequence number; without it the latest."),
});

export const messagePageSchema = z.object({
  data: z.array(runEventRowSchema),
  has_more: z.boolean(),
  next_before_seq: z.int().nullable(),
});
export const runMessagesSchema = z.object({ data: z.array(runEventRowSchema), has_more: z.boolean() });

export const listMessagesQuerySchema = z
  .strictObject({
    limit: wholeNumber({ min: 1, max: MESSAGES_LIMIT_MAX }).default(MESSAGES_LIMIT_DEFAULT),
    before_seq: seqSchema.optional().describe("The last rows before this sequence number."),
    after_seq: seqSchema.optional().describe("The first rows behind this sequence number."),
  })
  .refine((query) => query.before_seq === undefined || query.after_seq === undefined, {
    path: ["before_seq"],
    message: "give before_seq or after_seq, not both",
  });
export type ListMessagesQuery = z.output<typeof listMessagesQuerySchema>;
