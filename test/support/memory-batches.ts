/**
 * The batch repository port in memory: the rows of a program that keeps none. Every method runs to its end without an
 * await, so each is as atomic as the port says.
 */
import type {
  BatchRepository,
  BatchSubmission,
  Claim,
  ClaimRequest,
  ExportPageQuery,
  Heartbeat,
  Inspection,
  ItemsQuery,
  RangeQuery,
  SettleReport,
  SubmissionRef,
} from "../../src/domain/batch/batch-repository.ts";
import type {
  BatchView,
  ItemOutputs,
  ItemResult,
  ItemStatus,
  LeaseRef,
  TokenUsage,
} from "../../src/domain/batch/batch.ts";
import { decideExpiry, type ItemSettlement } from "../../src/domain/batch/item-settlement.ts";
import { err, ok } from "../../src/domain/shared/result.ts";

interface Item {
  readonly ordinal: number;
  readonly key: string;
  readonly prompt: string;
  status: ItemStatus;
  attempts: number;
  deferrals: number;
  result: string | null;
  error: string | null;
  usage: TokenUsage | null;
  outputs: ItemOutputs | null;
  lease: string | null;
}

interface Lease extends LeaseRef {
  expiresAt: number;
}

interface Batch {
  readonly submission: BatchSubmission;
  readonly items: Item[];
  readonly leases: Map<string, Lease>;
  status: BatchView["status"];
  updatedAt: number;
  acknowledged: boolean;
}

export class MemoryBatches implements BatchRepository {
  readonly #batches = new Map<string, Batch>();

  async findSubmission(ref: SubmissionRef) {
    const found = this.#bySubmission(ref);
    if (found === undefined) return ok(undefined);
    if (found.submission.bodyHash === ref.bodyHash) return ok(viewOf(found));
    return err({ reason: "idempotency_conflict", message: "the key was used for another body" } as const);
  }

  async submit(submission: BatchSubmission) {
    const { submissionKey, owner, threadId, bodyHash, plan, batchId, now } = submission;
    const found = submissionKey === null ? undefined : this.#bySubmission({ owner, threadId, submissionKey, bodyHash });
    if (found !== undefined) {
      if (found.submission.bodyHash === bodyHash) return ok({ batch: viewOf(found), created: false });
      return err({ reason: "idempotency_conflict", message: "the key was used for another body" } as const);
    }
    const blank = { attempts: 0, deferrals: 0, result: null, error: null, usage: null, outputs: null, lease: null };
    const items = plan.items.map((item, ordinal): Item => ({ ...item, ...blank, ordinal, status: "pending" }));
    const batch: Batch = {
      submission,
      items,
      leases: new Map(),
      status: "running",
      updatedAt: now,
      acknowledged: false,
    };
    this.#batches.set(batchId, batch);
    return ok({ batch: viewOf(batch), created: true });
  }

  async forgetSubmissions(owner: string, threadId: string): Promise<void> {
    for (const [id, { submission }] of this.#batches) {
      if (submission.owner === owner && submission.threadId === threadId) this.#batches.delete(id);
    }
  }

  async systemDiscardLoading(): Promise<void> {}

  async cancel(owner: string, batchId: string, now: number) {
    const batch = this.#owned(owner, batchId);
    if (batch === undefined) return undefined;
    if (batch.status === "running") {
      for (const item of batch.items.filter(isOpen)) Object.assign(item, { status: "cancelled", lease: null });
      Object.assign(batch, { status: "cancelled", updatedAt: now });
    }
    return viewOf(batch);
  }

  async systemInspect(batchId: string, ranges: readonly RangeQuery[]): Promise<Inspection> {
    const batch = this.#batches.get(batchId);
    return {
      batch: batch && viewOf(batch),
      ranges: ranges.map((range) => ({ ...range, pending: 0, leased: 0, leaseExpiresAt: undefined })),
    };
  }

  async systemExpire(batchId: string, _range: RangeQuery, now: number): Promise<number> {
    return this.#expire(batchId, now);
  }

  async systemReclaim(batchId: string, now: number): Promise<number> {
    this.#expire(batchId, now);
    return this.#batches.get(batchId)?.items.filter(({ status }) => status === "leased").length ?? 0;
  }

  async systemForget(batchId: string): Promise<void> {
    const batch = this.#batches.get(batchId);
    if (batch !== undefined) batch.acknowledged = true;
  }

  async systemListStale(before: number, after: string, limit: number) {
    return [...this.#batches]
      .filter(([id, batch]) => id > after && !batch.acknowledged && batch.updatedAt < before)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, limit)
      .map(([batchId, { submission }]) => ({ batchId, owner: submission.owner, threadId: submission.threadId }));
  }

  async getBatch(owner: string, batchId: string) {
    const batch = this.#owned(owner, batchId);
    return batch && viewOf(batch);
  }

  async listItems(owner: string, batchId: string, query: ItemsQuery) {
    const { status, afterOrdinal, limit, previewChars } = query;
    return this.#owned(owner, batchId)
      ?.items.filter((item) => item.ordinal > afterOrdinal && (status === undefined || item.status === status))
      .slice(0, limit)
      .map((item) => ({ ...item, preview: item.result?.slice(0, previewChars) ?? null }));
  }

  async exportPage(owner: string, batchId: string, { afterOrdinal, limit }: ExportPageQuery) {
    const batch = this.#owned(owner, batchId);
    if (batch === undefined) return undefined;
    const ended = batch.items.filter((item) => item.ordinal > afterOrdinal && !isOpen(item)) as (Item & ItemResult)[];
    const items = ended.slice(0, limit);
    return { items, nextAfter: ended.length > limit ? (items.at(-1)?.ordinal ?? null) : null };
  }

  async systemClaim({ wake, leaseToken, now, leaseExpiresAt }: ClaimRequest): Promise<Claim> {
    const batch = this.#batches.get(wake.batchId);
    if (now >= wake.expiresAt) return { kind: "expired" };
    if (batch === undefined || batch.status !== "running") return { kind: "empty" };
    if ([...batch.leases.values()].some(({ grantId }) => grantId === wake.grantId)) return { kind: "taken" };
    const leased = batch.items.filter(({ status }) => status === "leased").length;
    const slots = Math.min(wake.slots, batch.submission.plan.maxRunningItems - leased);
    const pending = batch.items.filter(
      ({ status, ordinal }) => status === "pending" && ordinal >= wake.from && ordinal < wake.to,
    );
    const items = pending.slice(0, Math.max(0, slots));
    if (items.length === 0) return { kind: "empty" };
    const lease = { batchId: wake.batchId, grantId: wake.grantId, token: leaseToken };
    batch.leases.set(leaseToken, { ...lease, expiresAt: leaseExpiresAt });
    for (const item of items) Object.assign(item, { status: "leased", lease: leaseToken });
    const { plan, definition, submitterRole } = batch.submission;
    const { subagentType, maxAttempts, timeoutSeconds } = plan;
    return {
      kind: "claimed",
      lease,
      items: items.map(({ ordinal, key, prompt, attempts }) => ({ ordinal, key, prompt, attempts })),
      // As stored rows would give it back.
      batch: { subagentType, maxAttempts, timeoutSeconds, submitterRole, definition: structuredClone(definition) },
    };
  }

  async systemLoadFiles(batchId: string) {
    return this.#batches.get(batchId)?.submission.files ?? [];
  }

  async systemHeartbeat({ batchId, token }: LeaseRef, expiresAt: number, now: number): Promise<Heartbeat> {
    const batch = this.#batches.get(batchId);
    const lease = batch?.leases.get(token);
    if (batch?.status === "cancelled") return { kind: "cancelled" };
    if (lease === undefined || lease.expiresAt <= now) return { kind: "lost" };
    lease.expiresAt = expiresAt;
    return { kind: "held" };
  }

  async systemSettle(
    { batchId, token }: LeaseRef,
    settlements: readonly ItemSettlement[],
    now: number,
  ): Promise<SettleReport> {
    const batch = this.#batches.get(batchId);
    const held = settlements.filter(({ ordinal }) => batch?.items[ordinal]?.lease === token);
    if (batch !== undefined) for (const settlement of held) this.#apply(batch, settlement, now);
    return { applied: held.length, stale: settlements.length - held.length };
  }

  #expire(batchId: string, now: number): number {
    const batch = this.#batches.get(batchId);
    const dead = (batch?.items ?? []).filter(({ lease }) => {
      const held = lease === null ? undefined : batch?.leases.get(lease);
      return held !== undefined && held.expiresAt <= now;
    });
    for (const { ordinal, attempts } of dead) {
      const { maxAttempts } = batch!.submission.plan;
      this.#apply(batch!, decideExpiry({ ordinal, attempts, maxAttempts }), now);
    }
    return dead.length;
  }

  #apply(batch: Batch, settlement: ItemSettlement, now: number): void {
    const item = batch.items[settlement.ordinal]!;
    const { status, result, error, usage, outputs, attemptsSpent, deferred } = settlement;
    Object.assign(item, { status, result, error, usage, outputs, lease: null });
    item.attempts += attemptsSpent;
    item.deferrals += deferred;
    batch.updatedAt = now;
    if (!batch.items.some(isOpen)) batch.status = "completed";
  }

  #owned(owner: string, batchId: string): Batch | undefined {
    const batch = this.#batches.get(batchId);
    return batch?.submission.owner === owner ? batch : undefined;
  }

  #bySubmission({ owner, threadId, submissionKey }: SubmissionRef): Batch | undefined {
    return [...this.#batches.values()].find(
      ({ submission }) =>
        submission.owner === owner && submission.threadId === threadId && submission.submissionKey === submissionKey,
    );
  }
}

function isOpen({ status }: Item): boolean {
  return status === "pending" || status === "leased";
}

function viewOf({ submission, items, status, updatedAt }: Batch): BatchView {
  const { plan, batchId, threadId, now } = submission;
  const counts = { pending: 0, leased: 0, completed: 0, failed: 0, cancelled: 0 };
  for (const item of items) counts[item.status] += 1;
  const { title, subagentType, maxLiveItems, maxRunningItems, maxAttempts, timeoutSeconds } = plan;
  const limits = { maxLiveItems, maxRunningItems, maxAttempts, timeoutSeconds };
  const named = { batchId, threadId, title, subagentType, status, totalItems: items.length, counts };
  return { ...named, ...limits, createdAt: now, updatedAt };
}
