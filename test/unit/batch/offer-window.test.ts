import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  closeWindow,
  decideOffer,
  extendOffer,
  offersToInspect,
  openWindow,
  REOFFER_DELAY_MS,
  REOFFER_DELAY_MS_MAX,
  resolveOffer,
  returnOffer,
  sendOffer,
  windowDueAt,
  type OfferWindow,
} from "../../../src/domain/batch/offer-window.ts";

const window = openWindow({ total: 20, maxLive: 8, maxRunning: 5 });
const grant = (grantId: string, slots: number) => ({ grantId, slots, expiresAt: 1_000 });

function send(from: OfferWindow, grantId: string, slots: number, now = 0): OfferWindow {
  const wish = decideOffer(from, now);
  if (wish === undefined) throw new Error("nothing to offer");
  return sendOffer(from, wish, grant(grantId, slots)).window;
}

const nothing = { pending: 0, leased: 0, leaseExpiresAt: undefined };

describe("offer window", () => {
  it("B7: offers the next ordinals, as many as were granted, within running and live", () => {
    expect(decideOffer(window, 0)).toEqual({ from: 0, wanted: 5 });
    const one = send(window, "g1", 2);
    expect(one.offers).toMatchObject([{ from: 0, to: 2, want: 2 }]);
    const two = send(one, "g2", 3);
    expect(decideOffer(two, 0)).toBeUndefined();
    const back = returnOffer(two, "g2", 10);
    expect(decideOffer(back, 10)).toEqual({ from: 5, wanted: 3 });
    const three = send(back, "g3", 3, 10);
    expect(decideOffer(returnOffer(three, "g1", 10), 10)).toBeUndefined();
  });

  it("a returned range that finished leaves; one that is pending again comes before fresh ordinals", () => {
    const back = returnOffer(send(window, "g1", 5), "g1", 10);
    expect(resolveOffer(back, 0, nothing, 10).offers).toEqual([]);
    const again = resolveOffer(back, 0, { ...nothing, pending: 2 }, 10);
    expect(decideOffer(again, 10)).toEqual({ from: 0, wanted: 2 });
    expect(again.offers).toMatchObject([{ from: 0, to: 5, want: 2, tries: 0 }]);
  });

  it("P8: a range without progress is offered again after 1, 2, 4 … at most 60 s", () => {
    let at = send(window, "g0", 3);
    const delays: number[] = [];
    for (let round = 1, now = 0; round <= 9; round += 1) {
      at = resolveOffer(returnOffer(at, `g${round - 1}`, now), 0, { ...nothing, pending: 3 }, now);
      const state = at.offers[0]?.state;
      if (state?.kind !== "wait") throw new Error("not waiting");
      delays.push(state.at - now);
      expect(decideOffer(at, state.at - 1)).not.toMatchObject({ from: 0 });
      now = state.at;
      at = sendOffer(at, { from: 0, wanted: 3 }, grant(`g${round}`, 3)).window;
    }
    expect(delays.slice(0, 3)).toEqual([REOFFER_DELAY_MS, 2_000, 4_000]);
    expect(delays.at(-1)).toBe(REOFFER_DELAY_MS_MAX);
  });

  it("B6: a wake whose grant ran out is looked at, and offered again at once when nobody claimed it", () => {
    const out = send(window, "g1", 2);
    expect(offersToInspect(out, 999)).toEqual([]);
    expect(offersToInspect(out, 1_000)).toMatchObject([{ from: 0, to: 2 }]);
    const lost = resolveOffer(out, 0, { ...nothing, pending: 2 }, 1_000);
    expect(decideOffer(lost, 1_000)).toEqual({ from: 0, wanted: 2 });
    expect(offersToInspect(extendOffer(out, 0, 5_000), 1_000)).toEqual([]);
  });

  it("items still leased after their grant came back are looked at when that lease ends", () => {
    const back = returnOffer(send(window, "g1", 2), "g1", 10);
    const leased = resolveOffer(back, 0, { pending: 0, leased: 1, leaseExpiresAt: 700 }, 10);
    expect(offersToInspect(leased, 699)).toEqual([]);
    expect(offersToInspect(leased, 700)).toMatchObject([{ want: 1, state: { grantId: "g1" } }]);
  });

  it("says when it is due, and a closed window keeps only what still holds a grant", () => {
    expect(windowDueAt(window, 0, 500)).toBe(500);
    const sent = send(send(window, "g1", 2), "g2", 2);
    const closed = closeWindow(returnOffer(sent, "g1", 5));
    expect(closed.offers.map((offer) => offer.from)).toEqual([2]);
    expect(windowDueAt(closed, 5, 500)).toBe(1_000);
    expect(decideOffer(closed, 5_000)).toBeUndefined();
    expect(windowDueAt(closeWindow(window), 0, 500)).toBeUndefined();
  });

  it("B7 P1: whatever happens to wakes, every unfinished offered ordinal is in exactly one offer and all finish", () => {
    const shape = fc.record({
      total: fc.integer({ min: 1, max: 60 }),
      maxLive: fc.integer({ min: 1, max: 20 }),
      maxRunning: fc.integer({ min: 1, max: 8 }),
      seed: fc.array(fc.nat(99), { minLength: 40, maxLength: 40 }),
    });
    fc.assert(fc.property(shape, runToTheEnd), { numRuns: 300 });
  });
});

/** Items finish, fail, or their wake is lost, as the seed says; after it runs out everything goes well. */
function runToTheEnd({
  total,
  maxLive,
  maxRunning,
  seed,
}: {
  total: number;
  maxLive: number;
  maxRunning: number;
  seed: number[];
}): void {
  const finished = new Set<number>();
  let at = openWindow({ total, maxLive, maxRunning });
  let now = 0;
  for (let round = 0; finished.size < total; round += 1) {
    expect(round, "rounds until the end").toBeLessThan(1_000);
    const luck = seed[round] ?? 0;
    const isLucky = round >= seed.length;
    for (let wish = decideOffer(at, now); wish !== undefined; wish = decideOffer(at, now)) {
      const slots = 1 + (luck % wish.wanted);
      at = sendOffer(at, wish, { grantId: `g${round}.${at.offers.length}`, slots, expiresAt: now + 100 }).window;
      expectInvariants(at, finished);
    }
    for (const offer of at.offers) {
      if (offer.state.kind !== "out" || luck % 7 === 3) continue;
      const claimed = range(offer)
        .filter((ordinal) => !finished.has(ordinal))
        .slice(0, offer.state.slots);
      for (const ordinal of claimed) if (isLucky || (ordinal + luck) % 5 !== 1) finished.add(ordinal);
      at = returnOffer(at, offer.state.grantId, now);
    }
    for (const offer of offersToInspect(at, now)) {
      const pending = range(offer).filter((ordinal) => !finished.has(ordinal)).length;
      at = resolveOffer(at, offer.from, { pending, leased: 0, leaseExpiresAt: undefined }, now);
    }
    expectInvariants(at, finished);
    now = windowDueAt(at, now, 50) ?? now;
  }
}

function range({ from, to }: { from: number; to: number }): number[] {
  return Array.from({ length: to - from }, (_, place) => from + place);
}

function expectInvariants(at: OfferWindow, finished: ReadonlySet<number>): void {
  const covered = at.offers.flatMap(range);
  expect(new Set(covered).size).toBe(covered.length);
  const unfinished = range({ from: 0, to: at.next }).filter((ordinal) => !finished.has(ordinal));
  expect(unfinished.filter((ordinal) => !covered.includes(ordinal))).toEqual([]);
  expect(unfinished.length).toBeLessThanOrEqual(at.maxLive);
  const running = at.offers.reduce((sum, { state }) => sum + (state.kind === "out" ? state.slots : 0), 0);
  expect(running).toBeLessThanOrEqual(at.maxRunning);
}
