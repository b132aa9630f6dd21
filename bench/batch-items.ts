/**
 * What one batch item costs in D1, counted from `meta.rows_written` and `meta.rows_read`, never from a clock: the rows of
 * a whole batch life (submit, claims, settles, the looks of the thread object) divided by its items.
 * Runs the real repository; the caller gives a migrated D1.
 */
import { decideOffer, openWindow, resolveOffer, returnOffer, sendOffer } from "../src/domain/batch/offer-window.ts";
import { decideSettlement } from "../src/domain/batch/item-settlement.ts";
import type { ClaimedItem } from "../src/domain/batch/batch.ts";
import { D1BatchRepository } from "../src/platform/d1/batch-repository.ts";
import { MeteredD1 } from "./metered-d1.ts";

export interface BatchBill {
  readonly items: number;
  readonly maxRunning: number;
  readonly rowsWrittenPerItem: number;
  readonly rowsReadPerItem: number;
  readonly statementsPerItem: number;
  /** Grants returned: one call to the thread object each. */
  readonly objectRequestsPerItem: number;
}

export interface BatchBillOptions {
  readonly items: number;
  /** Items of one claim. */
  readonly maxRunning: number;
  /** `together`: one settle a claim; `one_by_one`: the worst case of slow items. */
  readonly settle: "together" | "one_by_one";
  readonly newId: () => string;
}

/** The bounds of architecture section 7. */
export const BATCH_ITEM_BOUNDS = {
  rowsWrittenTogether: 4.5,
  rowsWrittenOneByOne: 6,
  rowsRead: 40,
  statements: 3,
  objectRequests: 0.5,
} as const;

export async function measureBatchItems(db: D1Database, options: BatchBillOptions): Promise<BatchBill> {
  const meter = new MeteredD1(db);
  const repository = new D1BatchRepository(meter.database);
  const { items, maxRunning } = options;
  const batchId = await submitBatch(repository, options);
  let window = openWindow({ total: items, maxLive: Math.max(100, maxRunning), maxRunning });
  let groups = 0;
  for (let wish = decideOffer(window, 0); wish !== undefined; wish = decideOffer(window, 0)) {
    const grant = { grantId: options.newId(), slots: wish.wanted, expiresAt: 1 };
    const sent = sendOffer(window, wish, grant);
    await runGroup(repository, { batchId, grant, from: sent.offer.from, to: sent.offer.to }, options);
    groups += 1;
    const range = { from: sent.offer.from, to: sent.offer.to, grantId: grant.grantId };
    const [finding] = (await repository.systemInspect(batchId, [range])).ranges;
    if (finding === undefined) throw new Error("the range was not inspected");
    window = resolveOffer(returnOffer(sent.window, grant.grantId, 0), range.from, finding, 0);
  }
  await repository.systemForget(batchId);
  const batch = await repository.getBatch("bench", batchId);
  if (batch?.counts.completed !== items) throw new Error("the bench batch did not complete");
  const { rowsWritten, rowsRead, statements } = meter.totals();
  return {
    items,
    maxRunning,
    rowsWrittenPerItem: rowsWritten / items,
    rowsReadPerItem: rowsRead / items,
    statementsPerItem: statements / items,
    objectRequestsPerItem: groups / items,
  };
}

async function submitBatch(repository: D1BatchRepository, options: BatchBillOptions): Promise<string> {
  const { items, maxRunning, newId } = options;
  const submitted = await repository.submit({
    owner: "bench",
    threadId: "bench",
    batchId: newId(),
    submissionKey: newId(),
    bodyHash: "bench",
    plan: {
      title: "Bench",
      subagentType: "bash",
      items: Array.from({ length: items }, (_, place) => ({ key: `k${place}`, prompt: `Count ${place}` })),
      files: [],
      maxLiveItems: Math.max(100, maxRunning),
      maxRunningItems: maxRunning,
      maxAttempts: 3,
      timeoutSeconds: 780,
    },
    submitterRole: "user",
    definition: { name: "bash" },
    files: [],
    now: 0,
  });
  if (!submitted.ok) throw new Error("the bench batch was refused");
  return submitted.value.batch.batchId;
}

async function runGroup(
  repository: D1BatchRepository,
  group: { batchId: string; grant: { grantId: string; slots: number }; from: number; to: number },
  options: BatchBillOptions,
): Promise<void> {
  const wake = { owner: "bench", threadId: "bench", expiresAt: 1, ...group.grant, ...group };
  const claim = await repository.systemClaim({ wake, leaseToken: options.newId(), now: 0, leaseExpiresAt: 1 });
  if (claim.kind !== "claimed") throw new Error(`the bench wake was ${claim.kind}`);
  await repository.systemLoadFiles(group.batchId);
  const settlements = claim.items.map((item) => settled(item, claim.batch.maxAttempts));
  if (options.settle === "together") await repository.systemSettle(claim.lease, settlements, 0);
  else for (const settlement of settlements) await repository.systemSettle(claim.lease, [settlement], 0);
}

function settled(item: ClaimedItem, maxAttempts: number) {
  const facts = { ordinal: item.ordinal, attempts: item.attempts, maxAttempts, resultCharsMax: 1_000 };
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  const settlement = decideSettlement(facts, { kind: "completed", result: "done", usage, outputs: null });
  if (settlement === undefined) throw new Error("a completion settles");
  return settlement;
}
