/**
 * The port onto batch rows. Submit, cancel and sweep are the thread object's; claim, heartbeat and settle a consumer's.
 *
 * Contract: every method is atomic where it says so and safe to repeat. Methods named `system…` have no owner in hand
 * (consumer, sweeper) and are never reachable from a request. A foreign or unknown id is `undefined` (P7). A batch that is
 * still loading does not exist for anyone but `submit`.
 */
import type { Result } from "../shared/result.ts";
import type { Role } from "../trust/principal.ts";
import type {
  BatchFacts,
  BatchFile,
  BatchView,
  ClaimedItem,
  ItemResult,
  ItemStatus,
  ItemView,
  LeaseRef,
  Wake,
} from "./batch.ts";
import type { SubmissionConflict } from "./batch-refusal.ts";
import type { ItemSettlement } from "./item-settlement.ts";
import type { OfferFinding } from "./offer-window.ts";
import type { BatchPlan } from "./validate-batch.ts";

export interface SubmissionRef {
  readonly owner: string;
  readonly threadId: string;
  readonly submissionKey: string;
  /** Of the body as the caller sent it. */
  readonly bodyHash: string;
}

export interface BatchSubmission {
  readonly owner: string;
  readonly threadId: string;
  /** Minted by the caller, UUID v7; used only when the submission is new. */
  readonly batchId: string;
  /** `null`: the caller gave none, so nothing makes a repeat the same submission. */
  readonly submissionKey: string | null;
  readonly bodyHash: string;
  readonly plan: BatchPlan;
  readonly definition: unknown;
  /** Kept with the definition. */
  readonly submitterRole: Role;
  readonly files: readonly BatchFile[];
  readonly now: number;
}

export interface ClaimRequest {
  readonly wake: Wake;
  readonly leaseToken: string;
  readonly now: number;
  readonly leaseExpiresAt: number;
}

export type Claim =
  | {
      readonly kind: "claimed";
      readonly lease: LeaseRef;
      readonly items: readonly ClaimedItem[];
      readonly batch: BatchFacts;
    }
  /** Nothing pending in the range, or the batch has ended: the grant is unused. */
  | { readonly kind: "empty" }
  /** The grant was claimed before, by an earlier delivery of this wake: that one returns it. */
  | { readonly kind: "taken" }
  | { readonly kind: "expired" };

export type Heartbeat = { readonly kind: "held" } | { readonly kind: "cancelled" } | { readonly kind: "lost" };

export interface SettleReport {
  readonly applied: number;
  /** Writes refused because the lease no longer holds the item (B2). */
  readonly stale: number;
}

export interface RangeQuery {
  readonly from: number;
  readonly to: number;
  readonly grantId: string;
}

export interface RangeFinding extends OfferFinding, RangeQuery {}

/** `batch` is `undefined` when it does not exist or is still loading. */
export interface Inspection {
  readonly batch: BatchView | undefined;
  readonly ranges: readonly RangeFinding[];
}

export interface LiveBatch {
  readonly batchId: string;
  readonly owner: string;
  readonly threadId: string;
}

export interface ItemsQuery {
  readonly status?: ItemStatus | undefined;
  readonly afterOrdinal: number;
  readonly limit: number;
  readonly previewChars: number;
}

export interface ExportPageQuery {
  readonly afterOrdinal: number;
  readonly limit: number;
}

export interface ExportPage {
  readonly items: readonly ItemResult[];
  /** The `afterOrdinal` of the following page; `null` on the last. */
  readonly nextAfter: number | null;
}

export interface BatchReader {
  getBatch(owner: string, batchId: string): Promise<BatchView | undefined>;
  /** By ordinal. `undefined` for a batch the owner does not have. */
  listItems(owner: string, batchId: string, query: ItemsQuery): Promise<readonly ItemView[] | undefined>;
  /** Terminal items by ordinal, a page bounded by rows and bytes. `undefined` for a batch the owner does not have. */
  exportPage(owner: string, batchId: string, page: ExportPageQuery): Promise<ExportPage | undefined>;
}

export interface BatchWorkRows {
  /** Atomic. A grant is claimed at most once (B6); at most `max_running_items` are ever leased (B7). */
  systemClaim(request: ClaimRequest): Promise<Claim>;
  systemLoadFiles(batchId: string): Promise<readonly BatchFile[]>;
  /** One row. `lost` once the lease has expired, even if nobody swept it yet (B1). */
  systemHeartbeat(lease: LeaseRef, expiresAt: number, now: number): Promise<Heartbeat>;
  /** Atomic: items, events, counters and the end of the batch move together; each write is guarded by the token (B2). */
  systemSettle(lease: LeaseRef, settlements: readonly ItemSettlement[], now: number): Promise<SettleReport>;
}

export interface BatchRepository extends BatchReader, BatchWorkRows {
  /** The batch stored under a key, if any; a conflict when its body was another. A repeat is answered by this alone. */
  findSubmission(submission: SubmissionRef): Promise<Result<BatchView | undefined, SubmissionConflict>>;
  /** The same key and body return the stored batch, another body a conflict (B9). Leftovers of a dead load are replaced. */
  submit(submission: BatchSubmission): Promise<Result<{ batch: BatchView; created: boolean }, SubmissionConflict>>;
  /** The thread is being deleted: its keys may name other batches afterwards. */
  forgetSubmissions(owner: string, threadId: string): Promise<void>;
  /** Removes a load that will not finish. A batch that is not loading is left alone. */
  systemDiscardLoading(batchId: string): Promise<void>;
  /** Atomic (B4). Gives the batch as it is then; one that already ended is left alone (B5). */
  cancel(owner: string, batchId: string, now: number): Promise<BatchView | undefined>;
  /**
   * What became of offered ranges. Closes their grants: one not claimed until now never will be, so whoever asks may
   * take the grant back. Reads the ranges only.
   */
  systemInspect(batchId: string, ranges: readonly RangeQuery[]): Promise<Inspection>;
  /** Spends the attempt of every item of a range that an expired lease still holds. Gives how many items moved. */
  systemExpire(batchId: string, range: RangeQuery, now: number): Promise<number>;
  /**
   * For a batch whose offers are not known any more: spends the attempt of every item that an expired lease holds. Gives
   * how many items a live lease holds. Walks the batch.
   */
  systemReclaim(batchId: string, now: number): Promise<number>;
  /** The owner's thread has recorded the end of the batch. */
  systemForget(batchId: string): Promise<void>;
  /** Batches not acknowledged as ended whose rows have not moved since `before`, by id. */
  systemListStale(before: number, afterBatchId: string, limit: number): Promise<readonly LiveBatch[]>;
}
