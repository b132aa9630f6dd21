/** Builders for batch tests: a submission of n items, wakes over its ordinals, and the sums that counters must equal. */
import type { BatchSubmission } from "../../src/domain/batch/batch-repository.ts";
import type { BatchCounts, ItemStatus, Wake } from "../../src/domain/batch/batch.ts";
import { decideSettlement, type ItemSettlement } from "../../src/domain/batch/item-settlement.ts";
import type { BatchPlan } from "../../src/domain/batch/validate-batch.ts";

export const NOW = 1_800_000_000_000;
export const LEASE_MS = 120_000;

export function plan(items: number, over: Partial<BatchPlan> = {}): BatchPlan {
  return {
    title: "Numbers",
    subagentType: "bash",
    items: Array.from({ length: items }, (_, place) => ({ key: `k${place}`, prompt: `Count ${place}` })),
    files: [],
    maxLiveItems: 100,
    maxRunningItems: 10,
    maxAttempts: 3,
    timeoutSeconds: 780,
    ...over,
  };
}

export function submission(over: Partial<BatchSubmission> = {}): BatchSubmission {
  return {
    owner: "alice",
    threadId: "t1",
    batchId: crypto.randomUUID(),
    submissionKey: null,
    bodyHash: "hash",
    plan: plan(20),
    definition: { name: "bash" },
    submitterRole: "user",
    files: [],
    now: NOW,
    ...over,
  };
}

export function wake(batchId: string, over: Partial<Wake> = {}): Wake {
  return {
    batchId,
    owner: "alice",
    threadId: "t1",
    from: 0,
    to: 10,
    grantId: crypto.randomUUID(),
    slots: 10,
    expiresAt: NOW + LEASE_MS,
    ...over,
  };
}

/** The settlement of a plain completion, as the consumer would decide it. */
export function completed(ordinal: number, result = `r${ordinal}`): ItemSettlement {
  const facts = { ordinal, attempts: 0, maxAttempts: 3, resultCharsMax: 2_000_000 };
  return decideSettlement(facts, {
    kind: "completed",
    result,
    usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 },
    outputs: null,
  })!;
}

export function failed(ordinal: number, attempts: number, maxAttempts = 3): ItemSettlement {
  return decideSettlement({ ordinal, attempts, maxAttempts, resultCharsMax: 100 }, { kind: "failed", error: "broke" })!;
}

export interface StoredItem {
  readonly ordinal: number;
  readonly status: ItemStatus;
  readonly attempts: number;
  readonly deferrals: number;
  readonly lease_token: string | null;
  readonly result: string | null;
  readonly error: string | null;
}

export async function storedItems(db: D1Database, batchId: string): Promise<StoredItem[]> {
  const { results } = await db
    .prepare(
      `SELECT ordinal, status, attempts, deferrals, lease_token, result, error FROM batch_items
       WHERE batch_id = ? ORDER BY ordinal`,
    )
    .bind(batchId)
    .all<StoredItem>();
  return results;
}

/** Items by status, counted from the rows themselves (B8). */
export async function sums(db: D1Database, batchId: string): Promise<BatchCounts> {
  const counts: Record<ItemStatus, number> = { pending: 0, leased: 0, completed: 0, failed: 0, cancelled: 0 };
  for (const item of await storedItems(db, batchId)) counts[item.status] += 1;
  return counts;
}
