/**
 * The nouns of durable batches (architecture section 7). Shapes only.
 * Item: `pending → leased → completed | failed | cancelled`; a spent attempt with budget left returns to `pending`.
 * Batch: `loading → running → completed | cancelled`; `loading` is invisible to owners.
 */
import type { Role } from "../trust/principal.ts";

export type ItemStatus = "pending" | "leased" | "completed" | "failed" | "cancelled";
export type VisibleBatchStatus = "running" | "completed" | "cancelled";

export type BatchCounts = Readonly<Record<ItemStatus, number>>;

export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
}

/** Path below `outputs/` → text, or base64 where the bytes are not UTF-8. */
export type ItemOutputs = Readonly<Record<string, string>>;

export interface BatchFile {
  /** Absolute, under `/workspace`. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

export interface BatchView {
  readonly batchId: string;
  readonly threadId: string;
  readonly title: string;
  readonly subagentType: string;
  readonly status: VisibleBatchStatus;
  readonly totalItems: number;
  readonly counts: BatchCounts;
  readonly maxLiveItems: number;
  readonly maxRunningItems: number;
  readonly maxAttempts: number;
  readonly timeoutSeconds: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface ItemView {
  readonly ordinal: number;
  readonly key: string;
  readonly status: ItemStatus;
  readonly attempts: number;
  readonly deferrals: number;
  readonly preview: string | null;
  readonly error: string | null;
}

export interface ItemResult {
  readonly ordinal: number;
  readonly key: string;
  readonly status: Extract<ItemStatus, "completed" | "failed" | "cancelled">;
  readonly result: string | null;
  readonly error: string | null;
  readonly attempts: number;
  readonly deferrals: number;
  readonly usage: TokenUsage | null;
  readonly outputs: ItemOutputs | null;
}

/** What a queue message says, translated at the rim: up to `slots` pending ordinals of `[from, to)` may be claimed. */
export interface Wake {
  readonly batchId: string;
  readonly owner: string;
  readonly threadId: string;
  readonly from: number;
  readonly to: number;
  readonly grantId: string;
  readonly slots: number;
  /** Milliseconds since the epoch; nothing is claimed at or after it. */
  readonly expiresAt: number;
}

/** One claim. Every later write names all three. */
export interface LeaseRef {
  readonly batchId: string;
  readonly grantId: string;
  readonly token: string;
}

export interface ClaimedItem {
  readonly ordinal: number;
  readonly key: string;
  readonly prompt: string;
  /** Attempts spent before this one. */
  readonly attempts: number;
}

export interface BatchFacts {
  readonly subagentType: string;
  /** The subagent's definition as it was at submit; its shape belongs to the agent. */
  readonly definition: unknown;
  /** Of whoever submitted the batch: its items may use what that role may. */
  readonly submitterRole: Role;
  readonly maxAttempts: number;
  readonly timeoutSeconds: number;
}
