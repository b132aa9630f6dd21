/**
 * The batches of one thread, as its object drives them: offers ranges of ordinals in wakes that carry a grant, looks at
 * what became of them, and tells when a batch started and ended.
 *
 * Owns the windows in object SQLite and the life of the grants given to wakes: a grant is returned once its consumer
 * said so, or once its lease is dead in D1, and extended while that lease lives. Does not own batch rows (the repository),
 * slots (admission) or the alarm (it only says when it is due).
 *
 * - Nothing is decided on state read before an await: every step loads the window, decides and saves it in one turn.
 * - A wake may be lost or doubled (B6): a lost one is found when its grant expires, a doubled one claims nothing.
 * - `onStart` and `onEnd` are called once a batch, in the turn that saves it, so what they write commits with it.
 */
import type { BatchRefusal } from "../domain/batch/batch-refusal.ts";
import type { Inspection, RangeFinding } from "../domain/batch/batch-repository.ts";
import type { BatchView, Wake } from "../domain/batch/batch.ts";
import {
  closeWindow,
  decideOffer,
  extendOffer,
  offersToInspect,
  openWindow,
  resolveOffer,
  returnOffer,
  sendOffer,
  windowDueAt,
  type OfferWindow,
  type OfferWish,
} from "../domain/batch/offer-window.ts";
import type { StoredWindow } from "../domain/batch/stored-window.ts";
import type { BatchDraft } from "../domain/batch/validate-batch.ts";
import type { Result } from "../domain/shared/result.ts";
import { BatchIntake, type BatchIntakePorts, type TakenBatch } from "./batch-intake.ts";

export interface WakeGrant {
  readonly batchId: string;
  readonly grantId: string;
  readonly slots: number;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** The batch side of the thread's admission. Synchronous: a grant is stored in the turn that gives it. */
export interface BatchAdmission {
  /** `undefined`: the batch waits, and `onTurn` follows. */
  grantBatch(batchId: string, wanted: number): WakeGrant | undefined;
  withdrawBatch(batchId: string): void;
  returnGrant(grantId: string): boolean;
  extendGrant(grantId: string, expiresAt: number): boolean;
}

export interface BatchPumpPorts extends Omit<BatchIntakePorts, "loadPatienceMs"> {
  readonly admission: BatchAdmission;
  readonly wakes: { send(wake: Wake): Promise<void> };
  /** The life of a lease and of the grant in a wake; also how long a batch waits before it looks again. */
  readonly leaseMs: number;
  readonly onStart: (batch: BatchView) => void;
  readonly onEnd: (batch: BatchView) => void;
  readonly onFault: (fault: unknown) => void;
}

/** After a failed look at D1: long enough not to press on a database in trouble. */
const FAULT_PAUSE_MS = 5_000;
/** A load writes at most some 30 statements; minutes mean that nobody is writing any more. */
const LOAD_PATIENCE_MS = 120_000;

export class BatchPump {
  readonly #ports: BatchPumpPorts;
  readonly #intake: BatchIntake;
  readonly #sending = new Set<Promise<void>>();

  constructor(ports: BatchPumpPorts) {
    this.#ports = ports;
    this.#intake = new BatchIntake({ ...ports, loadPatienceMs: LOAD_PATIENCE_MS });
  }

  /** `null` as the key: every call is a new batch. */
  async submit(draft: BatchDraft, submissionKey: string | null): Promise<Result<TakenBatch, BatchRefusal>> {
    const taken = await this.#intake.take(draft, submissionKey);
    if (taken.ok) {
      this.#start(taken.value.batch);
      await this.#rest();
    }
    return taken;
  }

  /** `undefined` when this thread has no such batch. */
  async status(batchId: string): Promise<BatchView | undefined> {
    const batch = await this.#ports.repository.getBatch(this.#ports.owner, batchId);
    return batch?.threadId === this.#ports.threadId ? batch : undefined;
  }

  /** Gives the batch once every item is terminal; one that had ended is given as it is. */
  async cancel(batchId: string): Promise<BatchView | undefined> {
    if ((await this.status(batchId)) === undefined) return undefined;
    const { repository, owner, now } = this.#ports;
    const batch = await repository.cancel(owner, batchId, now());
    if (batch !== undefined) await this.#end(batch);
    await this.#rest();
    return batch;
  }

  /** Before the thread is deleted: nothing of it goes on running. A load under way is found by the cron. */
  async cancelAll(): Promise<void> {
    for (const batchId of this.#ports.windows.all()) await this.cancel(batchId);
  }

  /** A consumer is done with its grant. Repeats and unknown grants change nothing. */
  async returnGrant(grant: { readonly batchId: string; readonly grantId: string }): Promise<void> {
    const { windows, admission, now } = this.#ports;
    const stored = windows.load(grant.batchId);
    if (stored !== undefined) {
      const window = returnOffer(stored.window, grant.grantId, now());
      this.#save({ ...stored, window: stored.phase === "ended" ? closeWindow(window) : window });
    }
    admission.returnGrant(grant.grantId);
    this.#offerAll();
    await this.#look(grant.batchId);
    await this.#rest();
  }

  /** A batch that waited for slots got its turn: the grant is used now or handed back. */
  onTurn(grant: WakeGrant): void {
    const stored = this.#ports.windows.load(grant.batchId);
    const wish = stored?.phase === "running" ? decideOffer(stored.window, this.#ports.now()) : undefined;
    if (stored === undefined || wish === undefined) this.#ports.admission.returnGrant(grant.grantId);
    else this.#send(stored, wish, grant);
  }

  nextDueAt(): number | undefined {
    return this.#ports.windows.nextDueAt();
  }

  /** The sweep (B6): looks at every batch that is due, then offers what became free. */
  async onAlarm(now: number): Promise<void> {
    for (const batchId of this.#ports.windows.due(now)) await this.#look(batchId);
    this.#offerAll();
    await this.#rest();
  }

  /** The cron found these rows unmoved for long: look at them whatever the alarm believes. */
  async poke(batchIds: readonly string[]): Promise<void> {
    for (const batchId of batchIds) {
      if (this.#ports.windows.load(batchId) === undefined) await this.#adopt(batchId);
      else await this.#look(batchId);
    }
    this.#offerAll();
    await this.#rest();
  }

  /** Once per batch: only the first call finds it in phase `submitting`. */
  #start(batch: BatchView): void {
    const stored = this.#ports.windows.load(batch.batchId);
    if (stored?.phase === "submitting") {
      this.#save({ ...stored, phase: "running" });
      this.#ports.onStart(batch);
    }
    this.#offerAll();
  }

  /** Rows without a window: acknowledge what ended, remove a dead load, drive what runs from its first ordinal on. */
  async #adopt(batchId: string): Promise<void> {
    const { repository, windows } = this.#ports;
    const batch = await this.status(batchId);
    if (batch === undefined) return repository.systemDiscardLoading(batchId);
    if (batch.status !== "running") return repository.systemForget(batchId);
    if (windows.load(batchId) !== undefined) return;
    const { totalItems: total, maxLiveItems: maxLive, maxRunningItems: maxRunning } = batch;
    this.#save({ v: 1, batchId, phase: "running", window: openWindow({ total, maxLive, maxRunning }) });
  }

  async #look(batchId: string): Promise<void> {
    try {
      const stored = this.#ports.windows.load(batchId);
      if (stored !== undefined && this.#intake.isLoading(batchId)) {
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
    if (batch !== undefined) return this.#start(batch);
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
    this.#save({ ...stored, window });
    for (const grantId of freed) this.#ports.admission.returnGrant(grantId);
    if (batch === undefined) this.#drop(batchId);
    else if (batch.status !== "running") await this.#end(batch);
    this.#offerAll();
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

  async #end(batch: BatchView): Promise<void> {
    const { windows, admission, repository, onEnd, onFault } = this.#ports;
    const stored = windows.load(batch.batchId);
    if (stored?.phase !== "running") return;
    this.#save({ ...stored, phase: "ended", window: closeWindow(stored.window) });
    onEnd(batch);
    admission.withdrawBatch(batch.batchId);
    this.#offerAll();
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

  #offerAll(): void {
    for (const batchId of this.#ports.windows.running()) while (this.#offerOnce(batchId)) continue;
  }

  /** True while the batch was given slots, so that asking again may give more. */
  #offerOnce(batchId: string): boolean {
    const now = this.#ports.now();
    const asking = this.#ports.windows.load(batchId);
    const wish = asking?.phase === "running" ? decideOffer(asking.window, now) : undefined;
    if (wish === undefined) return false;
    const grant = this.#ports.admission.grantBatch(batchId, wish.wanted);
    if (grant === undefined) return false;
    this.onTurn(grant);
    return true;
  }

  #send(stored: StoredWindow, wish: OfferWish, grant: WakeGrant): void {
    const { owner, threadId } = this.#ports;
    const { batchId, grantId, expiresAt } = grant;
    const slots = Math.min(grant.slots, wish.wanted);
    const { window, offer } = sendOffer(stored.window, wish, { grantId, slots, expiresAt });
    this.#save({ ...stored, window });
    const { from, to } = offer;
    const sending = this.#sendWake({ batchId, owner, threadId, from, to, grantId, slots, expiresAt });
    this.#sending.add(sending);
    void sending.finally(() => this.#sending.delete(sending));
  }

  /** A wake that could not be sent gives its slots back; its range is looked at and waits. */
  async #sendWake(wake: Wake): Promise<void> {
    try {
      await this.#ports.wakes.send(wake);
    } catch (fault) {
      this.#ports.onFault(fault);
      const { windows, admission, now } = this.#ports;
      const stored = windows.load(wake.batchId);
      if (stored !== undefined) this.#save({ ...stored, window: returnOffer(stored.window, wake.grantId, now()) });
      admission.returnGrant(wake.grantId);
    }
  }

  #save(stored: StoredWindow): void {
    const { windows, now, leaseMs } = this.#ports;
    if (stored.phase === "ended" && stored.window.offers.length === 0) windows.delete(stored.batchId);
    else windows.save(stored, windowDueAt(stored.window, now(), leaseMs));
  }

  /** Before a handler answers: wakes are on their way and the alarm is set. */
  async #rest(): Promise<void> {
    while (this.#sending.size > 0) await Promise.all(this.#sending);
    await this.#ports.arm();
  }
}
