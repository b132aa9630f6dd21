/**
 * Looks at what became of a batch's offers in D1 and acts on it: frees or extends grants, tells start and end, takes in
 * rows that have no window.
 * Owns the life of the grants given to wakes: a grant is returned once its lease is dead in D1, extended while that lease
 * lives. Does not own batch rows (the repository) or what is offered next (`batch-offers.ts`).
 *
 * - Nothing is decided on state read before an await: every step loads the window, decides and saves it in one turn.
 * - `onStart` and `onEnd` are called once a batch, in the turn that saves it, so what they write commits with it.
 */
import type { BatchRepository, Inspection, RangeFinding } from "../domain/batch/batch-repository.ts";
import type { BatchView } from "../domain/batch/batch.ts";
import {
  closeWindow,
  extendOffer,
  offersToInspect,
  openWindow,
  resolveOffer,
  type OfferWindow,
} from "../domain/batch/offer-window.ts";
import type { BatchWindowStore, StoredWindow } from "../domain/batch/stored-window.ts";
import { LOAD_PATIENCE_MS } from "./batch-intake.ts";
import type { BatchAdmission, BatchOffers } from "./batch-offers.ts";

export interface BatchInspectionPorts {
  readonly owner: string;
  readonly threadId: string;
  readonly repository: BatchRepository;
  readonly windows: BatchWindowStore;
  readonly admission: BatchAdmission;
  readonly offers: BatchOffers;
  /** A load of this instance is under way: not dead, however long it takes. */
  readonly isLoading: (batchId: string) => boolean;
  readonly onStart: (batch: BatchView) => void;
  readonly onEnd: (batch: BatchView) => void;
  readonly onFault: (fault: unknown) => void;
  readonly now: () => number;
}

/** After a failed look at D1: long enough not to press on a database in trouble. */
const FAULT_PAUSE_MS = 5_000;

export class BatchInspection {
  readonly #ports: BatchInspectionPorts;

  constructor(ports: BatchInspectionPorts) {
    this.#ports = ports;
  }

  /** `undefined` when this thread has no such batch. */
  async status(batchId: string): Promise<BatchView | undefined> {
    const batch = await this.#ports.repository.getBatch(this.#ports.owner, batchId);
    return batch?.threadId === this.#ports.threadId ? batch : undefined;
  }

  /** Once per batch: only the first call finds it in phase `submitting`. */
  start(batch: BatchView): void {
    const stored = this.#ports.windows.load(batch.batchId);
    if (stored?.phase === "submitting") {
      this.#ports.offers.save({ ...stored, phase: "running" });
      this.#ports.onStart(batch);
    }
    this.#ports.offers.offerAll();
  }

  /**
   * Rows without a window: acknowledge what ended, remove a dead load, drive what runs from its first ordinal on. Leases
   * of offers that nobody remembers must be over first: no offer would look for them again. The cron asks until then.
   */
  async adopt(batchId: string): Promise<void> {
    const { repository, windows } = this.#ports;
    const batch = await this.status(batchId);
    if (batch === undefined) return repository.systemDiscardLoading(batchId);
    if (batch.status !== "running") return repository.systemForget(batchId);
    if ((await repository.systemReclaim(batchId, this.#ports.now())) > 0) return;
    if (windows.load(batchId) !== undefined) return;
    const { totalItems: total, maxLiveItems: maxLive, maxRunningItems: maxRunning } = batch;
    this.#ports.offers.save({ v: 1, batchId, phase: "running", window: openWindow({ total, maxLive, maxRunning }) });
  }

  async look(batchId: string): Promise<void> {
    try {
      const stored = this.#ports.windows.load(batchId);
      if (stored !== undefined && this.#ports.isLoading(batchId)) {
        this.#ports.windows.save(stored, this.#ports.now() + LOAD_PATIENCE_MS);
      } else if (stored?.phase === "submitting") await this.#recoverLoad(stored);
      else if (stored !== undefined) await this.#inspect(stored);
    } catch (fault) {
      this.#ports.onFault(fault);
      const stored = this.#ports.windows.load(batchId);
      if (stored !== undefined) this.#ports.windows.save(stored, this.#ports.now() + FAULT_PAUSE_MS);
    }
  }

  /** The instance that was loading died: the batch either runs already or never will. */
  async #recoverLoad({ batchId }: StoredWindow): Promise<void> {
    const { repository, windows } = this.#ports;
    const batch = await this.status(batchId);
    if (batch !== undefined) return this.start(batch);
    await repository.systemDiscardLoading(batchId);
    windows.delete(batchId);
  }

  async #inspect({ batchId, window }: StoredWindow): Promise<void> {
    const { repository, now } = this.#ports;
    const ranges = offersToInspect(window, now()).map(({ from, to, state }) => ({ from, to, grantId: state.grantId }));
    let inspection = await repository.systemInspect(batchId, ranges);
    let expired = 0;
    for (const range of inspection.ranges) {
      const isDead = range.leased > 0 && range.leaseExpiresAt !== undefined && range.leaseExpiresAt <= now();
      if (isDead) expired += await repository.systemExpire(batchId, range, now());
    }
    if (expired > 0) inspection = await repository.systemInspect(batchId, ranges);
    await this.#apply(batchId, inspection);
  }

  async #apply(batchId: string, { batch, ranges }: Inspection): Promise<void> {
    const stored = this.#ports.windows.load(batchId);
    if (stored === undefined) return;
    let window = stored.window;
    const freed: string[] = [];
    for (const finding of ranges) {
      const applied = this.#applyFinding({ ...stored, window }, finding);
      window = applied.window;
      freed.push(...applied.freed);
    }
    this.#ports.offers.save({ ...stored, window });
    for (const grantId of freed) this.#ports.admission.returnGrant(grantId);
    if (batch === undefined) this.#drop(batchId);
    else if (batch.status !== "running") await this.end(batch);
    this.#ports.offers.offerAll();
  }

  #applyFinding({ window, phase }: StoredWindow, finding: RangeFinding): { window: OfferWindow; freed: string[] } {
    const now = this.#ports.now();
    const offer = window.offers.find((each) => each.from === finding.from);
    if (offer === undefined || offer.state.kind === "wait" || offer.state.grantId !== finding.grantId) {
      return { window, freed: [] };
    }
    const resolved = resolveOffer(window, offer.from, finding, now);
    if (offer.state.kind === "check") return { window: resolved, freed: [] };
    // After a cancel no item is leased, but its child runs on until its next heartbeat tells it.
    const isHeld = finding.leaseExpiresAt !== undefined && finding.leaseExpiresAt > now;
    if (!isHeld || (phase === "running" && finding.leased === 0)) return { window: resolved, freed: [finding.grantId] };
    this.#ports.admission.extendGrant(finding.grantId, finding.leaseExpiresAt);
    return { window: extendOffer(window, offer.from, finding.leaseExpiresAt), freed: [] };
  }

  async end(batch: BatchView): Promise<void> {
    const { windows, admission, repository, onEnd, onFault } = this.#ports;
    const stored = windows.load(batch.batchId);
    if (stored?.phase !== "running") return;
    this.#ports.offers.save({ ...stored, phase: "ended", window: closeWindow(stored.window) });
    onEnd(batch);
    admission.withdrawBatch(batch.batchId);
    this.#ports.offers.offerAll();
    // The cron asks again for what was not acknowledged.
    await repository.systemForget(batch.batchId).catch(onFault);
  }

  /** D1 has no such batch: nothing can be claimed, so every grant is free. */
  #drop(batchId: string): void {
    const stored = this.#ports.windows.load(batchId);
    this.#ports.windows.delete(batchId);
    this.#ports.admission.withdrawBatch(batchId);
    for (const { state } of stored?.window.offers ?? []) {
      if (state.kind === "out") this.#ports.admission.returnGrant(state.grantId);
    }
    this.#ports.onFault(new Error(`batch ${batchId} is gone from D1`));
  }
}
