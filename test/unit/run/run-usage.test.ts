import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addUsage,
  type CallerUsage,
  FURTHER_CALLERS,
  RUN_USAGE_ENTRIES_MAX,
  type TokenCounts,
} from "../../../src/domain/run/run-usage.ts";
import { estimateTokens } from "../../../src/domain/run/token-estimate.ts";

const counts = (input: number, output: number, more: Partial<TokenCounts> = {}): TokenCounts => ({
  answers: 1,
  input_tokens: input,
  output_tokens: output,
  total_tokens: input + output,
  ...more,
});
const lead = (more: Partial<CallerUsage>): CallerUsage => ({ caller: "lead_agent", model_name: "m", ...more });

describe("usage of a run", () => {
  it("R67 adds reports to reports and estimates to estimates, and leaves what nobody gave absent", () => {
    const first = addUsage([], [lead({ reported: counts(10, 2) })]);
    expect(first).toEqual([lead({ reported: counts(10, 2) })]);
    const second = addUsage(first, [lead({ estimated: counts(3, 1) }), lead({ reported: counts(20, 4) })]);
    expect(second).toEqual([lead({ reported: counts(30, 6, { answers: 2 }), estimated: counts(3, 1) })]);
    expect(Object.keys(first[0]!)).not.toContain("estimated");
  });

  it("tells callers and models apart, in the order they came", () => {
    const bash = { caller: "subagent:bash", model_name: "m" };
    const other = { caller: "lead_agent", model_name: "other" };
    const added = [lead({}), bash, other, bash].map((who) => ({ ...who, reported: counts(1, 1) }));
    const usage = addUsage([], added);
    expect(usage.map(({ caller, model_name, reported }) => [caller, model_name, reported?.answers])).toEqual([
      ["lead_agent", "m", 1],
      ["subagent:bash", "m", 2],
      ["lead_agent", "other", 1],
    ]);
  });

  it("keeps cached input apart, only where there was some", () => {
    const usage = addUsage(
      [lead({ reported: counts(5, 1) })],
      [lead({ reported: counts(5, 1, { cache_read_tokens: 4 }) })],
    );
    expect(usage[0]?.reported).toEqual(counts(10, 2, { answers: 2, cache_read_tokens: 4 }));
    expect(addUsage(usage, [])[0]?.reported?.cache_read_tokens).toBe(4);
  });

  it("P8 holds a bounded number of pairs, and past it the sums stay whole", () => {
    const names = fc.array(fc.integer({ min: 0, max: 3 * RUN_USAGE_ENTRIES_MAX }), { maxLength: 600 });
    fc.assert(
      fc.property(names, (callers) => {
        const added = callers.map((n) => ({ caller: `subagent:${n}`, model_name: "m", reported: counts(n, 1) }));
        const usage = addUsage([], added);
        expect(usage.length).toBeLessThanOrEqual(RUN_USAGE_ENTRIES_MAX + 1);
        const isFurther = usage.filter(({ caller }) => caller === FURTHER_CALLERS);
        expect(isFurther.length).toBe(new Set(callers).size > RUN_USAGE_ENTRIES_MAX ? 1 : 0);
        const total = usage.reduce((sum, { reported }) => sum + (reported?.total_tokens ?? 0), 0);
        expect(total).toBe(callers.reduce((sum, n) => sum + n + 1, 0));
      }),
    );
  });
});

it("an estimate is four characters a token, rounded up", () => {
  expect(estimateTokens(9, 4)).toEqual({ input_tokens: 3, output_tokens: 1, total_tokens: 4 });
  expect(estimateTokens(0, 0)).toEqual({ input_tokens: 0, output_tokens: 0, total_tokens: 0 });
});
