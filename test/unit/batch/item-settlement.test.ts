import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decideExpiry, decideSettlement, type BatchItemOutcome } from "../../../src/domain/batch/item-settlement.ts";
import { boundItemText, itemPrompt } from "../../../src/domain/batch/item-text.ts";

const facts = (over: object = {}) => ({ ordinal: 4, attempts: 0, maxAttempts: 3, resultCharsMax: 200, ...over });
const done = (result: string): BatchItemOutcome => ({ kind: "completed", result, usage: null, outputs: null });

describe("decideSettlement", () => {
  it("B3: a completion spends no attempt and leaves one row of history", () => {
    expect(decideSettlement(facts({ attempts: 1 }), done("ok"))).toMatchObject({
      status: "completed",
      attemptsSpent: 0,
      deferred: 0,
      result: "ok",
      event: { attempt: 2, kind: "completed" },
    });
  });

  it.each([
    [0, 3, "pending"],
    [1, 3, "pending"],
    [2, 3, "failed"],
    [0, 1, "failed"],
  ])("B3 R58: a failure after %i of %i attempts leaves the item %s", (attempts, maxAttempts, status) => {
    const outcome = { kind: "failed", error: "no" } as const;
    const settled = decideSettlement(facts({ attempts, maxAttempts }), outcome);
    expect(settled).toMatchObject({ status, attemptsSpent: 1, error: "no", event: { attempt: attempts + 1 } });
    expect(decideExpiry({ ordinal: 4, attempts, maxAttempts })).toMatchObject({
      status,
      attemptsSpent: 1,
      event: { kind: "lease_expired", attempt: attempts + 1 },
    });
  });

  it("B3 P4 R57: a deferral spends nothing, whatever was spent before", () => {
    fc.assert(
      fc.property(fc.nat(9), fc.string(), (attempts, reason) => {
        expect(decideSettlement(facts({ attempts, maxAttempts: 1 }), { kind: "deferred", reason })).toEqual({
          ordinal: 4,
          status: "pending",
          attemptsSpent: 0,
          deferred: 1,
          result: null,
          error: null,
          usage: null,
          outputs: null,
          event: null,
        });
      }),
    );
  });

  it("writes nothing for an aborted attempt: its lease is lost", () => {
    expect(decideSettlement(facts(), { kind: "aborted" })).toBeUndefined();
  });

  it("P5: outputs that do not fit fail the item by name instead of being dropped", () => {
    const outputs = { "outputs/a": "\u0001".repeat(400_000) };
    const settled = decideSettlement(facts(), { kind: "completed", result: "ok", usage: null, outputs });
    expect(settled).toMatchObject({ status: "pending", result: null, outputs: null });
    expect(settled?.error).toMatch(/^outputs_too_large: 24000\d\d bytes/);
  });
});

describe("texts", () => {
  it("P8 R55: a bounded result keeps within its limit, is cut between code points and says so", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), fc.integer({ min: 1, max: 300 }), (text, max) => {
        const bounded = boundItemText(text, max);
        expect(bounded.length).toBeLessThanOrEqual(Math.max(max, 0));
        expect(bounded.isWellFormed()).toBe(true);
        expect(bounded === text).toBe(text.length <= max);
      }),
    );
    expect(boundItemText("\u{1f600}".repeat(100), 101)).toMatch(
      /^(\u{1f600})+\n\[cut: the full text has 200 characters, the limit is 101\]$/u,
    );
  });

  it("R54: the child reads the item's key and the idempotency warning before the prompt", () => {
    const text = itemPrompt("row-7", "Count the words.");
    expect(text).toMatch(/^Batch item key: row-7\n/);
    expect(text).toMatch(/run more than once/);
    expect(text.endsWith("\nCount the words.")).toBe(true);
  });
});
