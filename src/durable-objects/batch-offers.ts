/**
 * Offers ranges of ordinals in wakes that carry a grant: asks admission for slots and sends what it gets.
 * Owns the sending of wakes and how a window is saved with its due time; `offer-window.ts` decides what is offered, and
 * what became of an offer is found by `batch-inspection.ts`.
 * A window is saved in the turn that took its grant, so no slot is held that no window names.
 */
import type { Wake } from "../domain/batch/batch.ts";
import { decideOffer, returnOffer, sendOffer, windowDueAt, type OfferWish } from "../domain/batch/offer-window.ts";
import type { BatchWindowStore, StoredWindow } from "../domain/batch/stored-window.ts";

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

export interface BatchOffersPorts {
  readonly owner: string;
  readonly threadId: string;
  readonly windows: BatchWindowStore;
  readonly admission: BatchAdmission;
  readonly wakes: { send(wake: Wake): Promise<void> };
  /** The life of a lease and of the grant in a wake; also how long a batch waits before it looks again. */
  readonly leaseMs: number;
  readonly onFault: (fault: unknown) => void;
  readonly now: () => number;
}

export class BatchOffers {
  readonly #ports: BatchOffersPorts;
  readonly #sending = new Set<Promise<void>>();

  constructor(ports: BatchOffersPorts) {
    this.#ports = ports;
  }

  /** Offers what the running batches want, as far as there are slots. */
  offerAll(): void {
    for (const batchId of this.#ports.windows.running()) while (this.#offerOnce(batchId)) continue;
  }

  /** A batch that waited for slots got its turn: the grant is used now or handed back. */
  onTurn(grant: WakeGrant): void {
    const stored = this.#ports.windows.load(grant.batchId);
    const wish = stored?.phase === "running" ? decideOffer(stored.window, this.#ports.now()) : undefined;
    if (stored === undefined || wish === undefined) this.#ports.admission.returnGrant(grant.grantId);
    else this.#send(stored, wish, grant);
  }

  /** Resolves once every wake is on its way or came back. */
  async sent(): Promise<void> {
    while (this.#sending.size > 0) await Promise.all(this.#sending);
  }

  /** With its due time; a window that ended and holds no grant any more is removed. */
  save(stored: StoredWindow): void {
    const { windows, now, leaseMs } = this.#ports;
    if (stored.phase === "ended" && stored.window.offers.length === 0) windows.delete(stored.batchId);
    else windows.save(stored, windowDueAt(stored.window, now(), leaseMs));
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
    this.save({ ...stored, window });
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
      if (stored !== undefined) this.save({ ...stored, window: returnOffer(stored.window, wake.grantId, now()) });
      admission.returnGrant(wake.grantId);
    }
  }
}
