import { describe, expect, it } from "vitest";
import { isPastBound, percentile, rounded } from "../../../bench/bench-row.ts";

const row = (value: number, bound?: number) => ({
  name: "rows",
  value,
  unit: "rows",
  ...(bound === undefined ? {} : { bound }),
});

describe("what makes the bench fail", () => {
  it("a billable unit past its bound does, one at its bound does not", () => {
    expect(isPastBound(row(21, 20))).toBe(true);
    expect(isPastBound(row(20, 20))).toBe(false);
  });

  it("a time without a bound never does", () => {
    expect(isPastBound(row(1e9))).toBe(false);
  });

  it("a count that could not be taken does, instead of passing as small", () => {
    expect(isPastBound(row(Number.NaN, 20))).toBe(true);
  });
});

describe("percentile", () => {
  it("gives a value that was measured, whatever the order", () => {
    expect(percentile([30, 10, 20, 40], 0.5)).toBe(20);
    expect(percentile([30, 10, 20, 40], 0.99)).toBe(40);
    expect(percentile([7], 0.5)).toBe(7);
  });

  it("shows three digits", () => {
    expect(rounded(1234.56)).toBe(1230);
    expect(rounded(0.123456)).toBe(0.123);
  });
});
