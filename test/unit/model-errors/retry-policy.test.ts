import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  attemptsFor,
  RETRY_AFTER_MAX_MS,
  retryWaitMs,
  toRetryPolicy,
} from "../../../src/domain/model-errors/retry-policy.ts";
import { parseDeputyConfig } from "../../../src/config.ts";

const policy = toRetryPolicy(parseDeputyConfig({}).llm_call);
const fails = (reason: "provider" | "truncated" | "idle" | "empty") => ({ reason, message: "" });

describe("attempts of a model turn", () => {
  it.each([
    ["transient", fails("provider"), 3, 3],
    ["busy", fails("provider"), 10, 10],
    ["transient", fails("empty"), 3, 3],
    ["burst_rate", fails("provider"), 10, 2],
    ["transient", fails("truncated"), 10, 2],
    ["transient", fails("idle"), 3, 2],
    ["burst_rate", fails("provider"), 1, 1],
    ["quota", fails("provider"), 3, 1],
    ["auth", fails("provider"), 3, 1],
    ["generic", fails("provider"), 3, 1],
  ] as const)("%s of %o, %i configured: %i", (reason, facts, configured, attempts) => {
    expect(attemptsFor(reason, facts, configured)).toBe(attempts);
  });
});

describe("the wait before another attempt", () => {
  it("starts at the base, grows to three times the last wait and stays under the cap", () => {
    const wait = (random: number, previousMs?: number) =>
      retryWaitMs({ reason: "transient", random, previousMs }, policy);
    expect([wait(0), wait(1), wait(1, 3_000), wait(1, 8_000), wait(0, 8_000)]).toEqual([
      1_000, 3_000, 8_000, 8_000, 1_000,
    ]);
  });

  it("starts higher after a burst limit, never above the cap", () => {
    expect(retryWaitMs({ reason: "burst_rate", random: 0 }, policy)).toBe(5_000);
    expect(retryWaitMs({ reason: "burst_rate", random: 0.5 }, { ...policy, capMs: 2_000 })).toBe(2_000);
  });

  it("is what the provider asks for, within a bound: an hour is not obeyed (P8)", () => {
    const wait = (retryAfterMs: number) => retryWaitMs({ reason: "transient", random: 0.5, retryAfterMs }, policy);
    expect([wait(7_000), wait(0), wait(3_600_000)]).toEqual([7_000, 0, RETRY_AFTER_MAX_MS]);
  });

  it("is never above its bound nor below zero, whatever is configured and asked for (P8)", () => {
    const ms = fc.integer({ min: 1, max: 60_000 });
    fc.assert(
      fc.property(
        fc.record({ attempts: ms, baseMs: ms, capMs: ms, burstBaseMs: ms }),
        fc.record({
          reason: fc.constantFrom("transient" as const, "busy" as const, "burst_rate" as const),
          random: fc.double({ min: 0, max: 0.999, noNaN: true }),
          previousMs: fc.option(ms, { nil: undefined }),
          retryAfterMs: fc.option(fc.double({ min: -1, max: 1e12, noNaN: true }), { nil: undefined }),
        }),
        (given, facts) => {
          const wait = retryWaitMs(facts, given);
          expect(wait).toBeGreaterThanOrEqual(0);
          expect(wait).toBeLessThanOrEqual(facts.retryAfterMs === undefined ? given.capMs : RETRY_AFTER_MAX_MS);
        },
      ),
    );
  });
});
