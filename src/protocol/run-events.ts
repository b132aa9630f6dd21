/**
 * The run event log's record (delegation-behaviour Appendix B): what the outbox holds, D1 stores and
 * `GET /threads/{t}/runs/{r}/events` returns. Types, categories and required fields are public.
 */
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
