/**
 * Between D1 rows of a batch and the domain's nouns. Owns the column lists and their translation; decides nothing.
 */
import type {
  BatchView,
  ClaimedItem,
  ItemOutputs,
  ItemResult,
  ItemView,
  TokenUsage,
} from "../../domain/batch/batch.ts";
import { invariant } from "../../domain/shared/assert.ts";

export const BATCH_COLUMNS = `batch_id, owner, thread_id, status, title, subagent_type, total_items, pending, leased,
  completed, failed, cancelled, max_live_items, max_running_items, max_attempts, timeout_seconds, created_at, updated_at`;

export interface BatchRow {
  readonly batch_id: string;
  readonly owner: string;
  readonly thread_id: string;
  readonly status: "loading" | "running" | "completed" | "cancelled";
  readonly title: string;
  readonly subagent_type: string;
  readonly total_items: number;
  readonly pending: number;
  readonly leased: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly max_live_items: number;
  readonly max_running_items: number;
  readonly max_attempts: number;
  readonly timeout_seconds: number;
  readonly created_at: number;
  readonly updated_at: number;
}

export interface ClaimedItemRow {
  readonly ordinal: number;
  readonly item_key: string;
  readonly prompt: string;
  readonly attempts: number;
}

export interface ItemViewRow {
  readonly ordinal: number;
  readonly item_key: string;
  readonly status: ItemView["status"];
  readonly attempts: number;
  readonly deferrals: number;
  readonly preview: string | null;
  readonly error: string | null;
}

export interface ItemResultRow {
  readonly ordinal: number;
  readonly item_key: string;
  readonly status: ItemResult["status"];
  readonly result: string | null;
  readonly error: string | null;
  readonly attempts: number;
  readonly deferrals: number;
  readonly usage: string | null;
  readonly outputs: string | null;
}

export function toBatchView(row: BatchRow): BatchView {
  invariant(row.status !== "loading", "a loading batch is never shown");
  return {
    batchId: row.batch_id,
    threadId: row.thread_id,
    title: row.title,
    subagentType: row.subagent_type,
    status: row.status,
    totalItems: row.total_items,
    counts: {
      pending: row.pending,
      leased: row.leased,
      completed: row.completed,
      failed: row.failed,
      cancelled: row.cancelled,
    },
    maxLiveItems: row.max_live_items,
    maxRunningItems: row.max_running_items,
    maxAttempts: row.max_attempts,
    timeoutSeconds: row.timeout_seconds,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** `RETURNING` promises no order: by ordinal. */
export function toClaimedItems(rows: readonly ClaimedItemRow[]): readonly ClaimedItem[] {
  return rows
    .map((row) => ({ ordinal: row.ordinal, key: row.item_key, prompt: row.prompt, attempts: row.attempts }))
    .sort((a, b) => a.ordinal - b.ordinal);
}

export function toItemView(row: ItemViewRow): ItemView {
  const { ordinal, item_key: key, status, attempts, deferrals, preview, error } = row;
  return { ordinal, key, status, attempts, deferrals, preview, error };
}

export function toItemResult(row: ItemResultRow): ItemResult {
  const { ordinal, item_key: key, status, result, error, attempts, deferrals } = row;
  const usage = row.usage === null ? null : (JSON.parse(row.usage) as TokenUsage);
  const outputs = row.outputs === null ? null : (JSON.parse(row.outputs) as ItemOutputs);
  return { ordinal, key, status, result, error, attempts, deferrals, usage, outputs };
}
