/**
 * Which ordinals of a batch are offered next: the pure half of the batch pump (architecture section 7).
 *
 * A window is a cursor (`next`: everything below was offered once) and the offers not known to be finished. Every
 * non-terminal ordinal below the cursor is in exactly one offer, so nothing is ever searched for in the batch.
 * An offer is `out` (a wake with a grant is under way), `check` (its grant came back, or a lease under it must end
 * first; its items must be looked at) or `wait` (items of it are pending again).
 * Upholds B7: wanted items over all offers ≤ `maxLive`, slots over all outstanding wakes ≤ `maxRunning`.
 */
import { invariant } from "../shared/assert.ts";
import { WAKE_SLOTS_MAX } from "./batch-limits.ts";

export type OfferState =
  | { readonly kind: "out"; readonly grantId: string; readonly slots: number; readonly expiresAt: number }
  | { readonly kind: "check"; readonly grantId: string; readonly at: number }
  | { readonly kind: "wait"; readonly at: number };

export interface Offer {
  /** Ordinals `[from, to)`. Offers never overlap. */
  readonly from: number;
  readonly to: number;
  /** Items in the range that may still be unfinished. */
  readonly want: number;
  /** Rounds without progress. */
  readonly tries: number;
  readonly state: OfferState;
}

export interface OfferWindow {
  readonly total: number;
  readonly next: number;
  readonly maxLive: number;
  readonly maxRunning: number;
  readonly offers: readonly Offer[];
}

/** What the window would like to send now: at most `wanted` slots over the range from `from`. */
export interface OfferWish {
  readonly from: number;
  readonly wanted: number;
}

/** What was found in D1 about one offer's range. */
export interface OfferFinding {
  readonly pending: number;
  readonly leased: number;
  /** Of the lease claimed under the offer's grant; `undefined` when it was never claimed. */
  readonly leaseExpiresAt: number | undefined;
}

/** A failing or deferring range is offered again after 1, 2, 4 … seconds, so an instant failure cannot spin. */
export const REOFFER_DELAY_MS = 1_000;
export const REOFFER_DELAY_MS_MAX = 60_000;

export function openWindow(limits: Pick<OfferWindow, "total" | "maxLive" | "maxRunning">): OfferWindow {
  return { ...limits, next: 0, offers: [] };
}

/** Returned ranges that are due come before fresh ones. `undefined` when nothing may be offered now. */
export function decideOffer(window: OfferWindow, now: number): OfferWish | undefined {
  const running = sum(window.offers, (offer) => (offer.state.kind === "out" ? offer.state.slots : 0));
  const room = Math.min(window.maxRunning - running, WAKE_SLOTS_MAX);
  if (room <= 0) return undefined;
  const due = window.offers.find((offer) => offer.state.kind === "wait" && offer.state.at <= now);
  if (due !== undefined) return { from: due.from, wanted: Math.min(due.want, room) };
  const live = sum(window.offers, (offer) => offer.want);
  const wanted = Math.min(room, window.maxLive - live, window.total - window.next);
  return wanted > 0 ? { from: window.next, wanted } : undefined;
}

/** The window after a grant was taken for a wish; the new offer is the one that starts at `wish.from`. */
export function sendOffer(
  window: OfferWindow,
  wish: OfferWish,
  grant: { readonly grantId: string; readonly slots: number; readonly expiresAt: number },
): { readonly window: OfferWindow; readonly offer: Offer } {
  const state = { kind: "out", grantId: grant.grantId, slots: grant.slots, expiresAt: grant.expiresAt } as const;
  const known = window.offers.find((offer) => offer.from === wish.from);
  if (known !== undefined) {
    invariant(known.state.kind === "wait", "only a waiting range is offered again");
    const offer = { ...known, state };
    return { window: replaceOffer(window, offer), offer };
  }
  invariant(wish.from === window.next, "a fresh offer starts at the cursor");
  const to = Math.min(window.total, wish.from + grant.slots);
  const offer = { from: wish.from, to, want: to - wish.from, tries: 0, state };
  return { window: { ...window, next: to, offers: [...window.offers, offer] }, offer };
}

/** The grant came back, or the wake could not be sent: the range must be looked at. */
export function returnOffer(window: OfferWindow, grantId: string, now: number): OfferWindow {
  const offer = window.offers.find(({ state }) => state.kind === "out" && state.grantId === grantId);
  if (offer === undefined) return window;
  return replaceOffer(window, { ...offer, state: { kind: "check", grantId, at: now } });
}

/** The lease under an outstanding wake lives on: so does its grant. */
export function extendOffer(window: OfferWindow, from: number, expiresAt: number): OfferWindow {
  const offer = window.offers.find((each) => each.from === from);
  if (offer === undefined || offer.state.kind !== "out") return window;
  return replaceOffer(window, { ...offer, state: { ...offer.state, expiresAt } });
}

/** Puts what was found into the window: finished ranges leave, leased ones are looked at again, pending ones wait. */
export function resolveOffer(window: OfferWindow, from: number, finding: OfferFinding, now: number): OfferWindow {
  const offer = window.offers.find((each) => each.from === from);
  if (offer === undefined || offer.state.kind === "wait") return window;
  const want = finding.pending + finding.leased;
  if (want === 0) return { ...window, offers: window.offers.filter((each) => each !== offer) };
  if (finding.leased > 0) {
    const at = Math.max(now, finding.leaseExpiresAt ?? now);
    return replaceOffer(window, { ...offer, want, state: { kind: "check", grantId: offer.state.grantId, at } });
  }
  // A range whose wake was lost or expired has waited a lease already.
  const tries = want < offer.want || offer.state.kind === "out" ? 0 : offer.tries + 1;
  const delay = tries === 0 ? 0 : Math.min(REOFFER_DELAY_MS * 2 ** (tries - 1), REOFFER_DELAY_MS_MAX);
  return replaceOffer(window, { ...offer, want, tries, state: { kind: "wait", at: now + delay } });
}

/** The batch ended: nothing more is offered, and only outstanding wakes still hold grants. */
export function closeWindow(window: OfferWindow): OfferWindow {
  return { ...window, next: window.total, offers: window.offers.filter((offer) => offer.state.kind === "out") };
}

/** Offers whose range must be looked at: returned ones, and wakes whose grant ran out. */
export function offersToInspect(window: OfferWindow, now: number): readonly (Offer & { state: { grantId: string } })[] {
  return window.offers.filter((offer): offer is Offer & { state: Exclude<OfferState, { kind: "wait" }> } =>
    offer.state.kind === "out" ? offer.state.expiresAt <= now : offer.state.kind === "check" && offer.state.at <= now,
  );
}

/**
 * When the window needs a look. What waits for slots only is woken by admission; `patienceMs` is how long that is
 * trusted before asking again.
 */
export function windowDueAt(window: OfferWindow, now: number, patienceMs: number): number | undefined {
  const times = window.offers.map(({ state }) => {
    if (state.kind === "out") return state.expiresAt;
    return state.kind === "wait" && state.at <= now ? now + patienceMs : state.at;
  });
  if (window.next < window.total) times.push(now + patienceMs);
  return times.length === 0 ? undefined : Math.min(...times);
}

function replaceOffer(window: OfferWindow, offer: Offer): OfferWindow {
  return { ...window, offers: window.offers.map((each) => (each.from === offer.from ? offer : each)) };
}

function sum(offers: readonly Offer[], of: (offer: Offer) => number): number {
  return offers.reduce((total, offer) => total + of(offer), 0);
}
