/**
 * Batches in D1: the one writer of batch, item and lease rows (P3), composed of its parts. Statements are in the parts.
 * What a thread's object writes stands behind the fence of its epoch; what a consumer writes is guarded by its lease.
 */
import type {
  BatchRepository,
  BatchSubmission,
  ClaimRequest,
  ExportPageQuery,
  ItemsQuery,
  RangeQuery,
  SubmissionRef,
} from "../../domain/batch/batch-repository.ts";
import type { LeaseRef } from "../../domain/batch/batch.ts";
import type { ItemSettlement } from "../../domain/batch/item-settlement.ts";
import { type D1Access, FencedDatabase, type Fencing } from "./fence.ts";
import { BatchClaims } from "./batch-claim.ts";
import { BatchReads } from "./batch-reads.ts";
import { settleItems } from "./batch-settle.ts";
import { BatchSubmit } from "./batch-submit.ts";
import { BatchSweep } from "./batch-sweep.ts";

export class D1BatchRepository implements BatchRepository {
  readonly #db: D1Access;
  readonly #submit: BatchSubmit;
  readonly #claims: BatchClaims;
  readonly #sweep: BatchSweep;
  readonly #reads: BatchReads;

  /** `fencing` is a thread object's; without it, for consumers, the cron and the gateway, nothing is fenced. */
  constructor(db: D1Database, fencing?: Fencing) {
    this.#db = db;
    const fenced = fencing === undefined ? db : new FencedDatabase(db, fencing);
    this.#submit = new BatchSubmit(fenced);
    this.#claims = new BatchClaims(db);
    this.#sweep = new BatchSweep(fenced);
    this.#reads = new BatchReads(db);
  }

  findSubmission(submission: SubmissionRef): ReturnType<BatchRepository["findSubmission"]> {
    return this.#submit.find(submission);
  }

  submit(submission: BatchSubmission): ReturnType<BatchRepository["submit"]> {
    return this.#submit.submit(submission);
  }

  forgetSubmissions(owner: string, threadId: string): Promise<void> {
    return this.#submit.forget(owner, threadId);
  }

  systemDiscardLoading(batchId: string): Promise<void> {
    return this.#submit.discard(batchId);
  }

  systemClaim(request: ClaimRequest): ReturnType<BatchRepository["systemClaim"]> {
    return this.#claims.claim(request);
  }

  systemHeartbeat(lease: LeaseRef, expiresAt: number, now: number): ReturnType<BatchRepository["systemHeartbeat"]> {
    return this.#claims.heartbeat(lease, expiresAt, now);
  }

  systemLoadFiles(batchId: string): ReturnType<BatchRepository["systemLoadFiles"]> {
    return this.#claims.loadFiles(batchId);
  }

  systemSettle(
    lease: LeaseRef,
    settlements: readonly ItemSettlement[],
    now: number,
  ): ReturnType<BatchRepository["systemSettle"]> {
    return settleItems(this.#db, lease, settlements, now);
  }

  cancel(owner: string, batchId: string, now: number): ReturnType<BatchRepository["cancel"]> {
    return this.#sweep.cancel(owner, batchId, now);
  }

  systemInspect(batchId: string, ranges: readonly RangeQuery[]): ReturnType<BatchRepository["systemInspect"]> {
    return this.#sweep.inspect(batchId, ranges);
  }

  systemExpire(batchId: string, range: RangeQuery, now: number): Promise<number> {
    return this.#sweep.expire(batchId, range, now);
  }

  systemReclaim(batchId: string, now: number): Promise<number> {
    return this.#sweep.reclaim(batchId, now);
  }

  systemForget(batchId: string): Promise<void> {
    return this.#sweep.forget(batchId);
  }

  systemListStale(before: number, afterBatchId: string, limit: number): ReturnType<BatchRepository["systemListStale"]> {
    return this.#sweep.listStale(before, afterBatchId, limit);
  }

  getBatch(owner: string, batchId: string): ReturnType<BatchRepository["getBatch"]> {
    return this.#reads.getBatch(owner, batchId);
  }

  listItems(owner: string, batchId: string, query: ItemsQuery): ReturnType<BatchRepository["listItems"]> {
    return this.#reads.listItems(owner, batchId, query);
  }

  exportPage(owner: string, batchId: string, page: ExportPageQuery): ReturnType<BatchRepository["exportPage"]> {
    return this.#reads.exportPage(owner, batchId, page);
  }
}
