import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  beginAttempt,
  decideDelivery,
  type DeliveryPolicy,
  firstAttempt,
  isSpent,
  outcomeOfStatus,
  WEBHOOK_RETRY_DELAY_MS_MAX,
} from "../../../src/domain/webhook/delivery.ts";

const POLICY: DeliveryPolicy = { attemptsMax: 8, retryBaseMs: 10_000, timeoutMs: 10_000 };
const RUN = { runId: "r", url: "https://hooks.example.com/" };
const FAILED = { kind: "failed", reason: "status_500", isFinal: false } as const;

describe("a delivery", () => {
  it("waits longer after each failure, up to an hour, and is given up after the last", () => {
    const waits: number[] = [];
    let delivery = firstAttempt(RUN, 0, POLICY);
    for (;;) {
      const decided = decideDelivery(delivery, FAILED, 1_000, POLICY);
      if (decided.kind !== "retry") {
        expect(decided).toEqual({ kind: "given_up", reason: "status_500" });
        break;
      }
      waits.push((decided.next.dueAt - 1_000) / 1_000);
      delivery = beginAttempt(decided.next, 1_000, POLICY);
    }
    expect(waits).toEqual([10, 30, 90, 270, 810, 2_430, 3_600]);
    expect(delivery.attempts).toBe(8);
  });

  it("is due again after an attempt whose end nobody saw, not before it could have ended", () => {
    const begun = firstAttempt(RUN, 5_000, POLICY);
    expect(begun).toMatchObject({ attempts: 1, dueAt: 5_000 + 10_000 + 10_000 });
    expect(isSpent(begun, POLICY)).toBe(false);
    expect(isSpent(begun, { ...POLICY, attemptsMax: 1 })).toBe(true);
  });

  it("is over at once when it was taken, and when another attempt would be refused the same way", () => {
    const begun = firstAttempt(RUN, 0, POLICY);
    expect(decideDelivery(begun, { kind: "delivered", status: 204 }, 0, POLICY)).toEqual({ kind: "done", status: 204 });
    const refused = { kind: "failed", reason: "redirect_refused", isFinal: true } as const;
    expect(decideDelivery(begun, refused, 0, POLICY)).toEqual({ kind: "given_up", reason: "redirect_refused" });
  });

  it("counts any 2xx as taken, 410 as the end, everything else as not yet", () => {
    expect([200, 202, 299].map((status) => outcomeOfStatus(status).kind)).toEqual(Array(3).fill("delivered"));
    const others = [100, 199, 300, 302, 304, 400, 404, 408, 429, 500, 503].map(outcomeOfStatus);
    expect(others.filter((outcome) => outcome.kind === "delivered" || outcome.isFinal)).toEqual([]);
    expect(outcomeOfStatus(410)).toEqual({ kind: "failed", reason: "status_410", isFinal: true });
  });

  it("ends within its bounds whatever happens to its attempts (P8)", () => {
    const policies = fc.record({
      attemptsMax: fc.integer({ min: 1, max: 20 }),
      retryBaseMs: fc.integer({ min: 1, max: 3_600_000 }),
      timeoutMs: fc.integer({ min: 1, max: 30_000 }),
    });
    fc.assert(
      fc.property(policies, fc.array(fc.boolean(), { minLength: 20, maxLength: 20 }), (policy, seen) => {
        let now = 0;
        let delivery = firstAttempt(RUN, now, policy);
        let attempts = 1;
        while (!isSpent(delivery, policy)) {
          // Either its failure was seen, or its process died and the row says when to go on.
          const decided = seen[attempts - 1] ? decideDelivery(delivery, FAILED, now, policy) : undefined;
          const next = decided?.kind === "retry" ? decided.next : delivery;
          expect(next.dueAt - now).toBeGreaterThan(0);
          expect(next.dueAt - now).toBeLessThanOrEqual(WEBHOOK_RETRY_DELAY_MS_MAX + policy.timeoutMs);
          now = next.dueAt;
          delivery = beginAttempt(next, now, policy);
          attempts += 1;
        }
        expect(attempts).toBe(policy.attemptsMax);
      }),
    );
  });
});
