/**
 * One line of the bench: what `bench/results.json` holds and the table prints. Owns the rule that only a bound makes a
 * bench fail, and that bounds stand on billable units alone: a time says as much about the machine as about Deputy.
 */
export interface BenchRow {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The most the value may be. */
  readonly bound?: number;
}

/** A part of the bench; `npm run bench -- --only <name>` runs one. */
export interface BenchPart {
  readonly name: string;
  /** One that takes longer hangs. */
  readonly secondsMax: number;
  /** `short`: to see that it works, not what it says. */
  run(options: { readonly short: boolean }): Promise<BenchRow[]>;
}

export function isPastBound(row: BenchRow): boolean {
  return row.bound !== undefined && !(row.value <= row.bound);
}

/** Three digits say what a measured time can say; counts are given as they are. */
export function rounded(value: number): number {
  return Number(value.toPrecision(3));
}

/** Nearest rank: a value that was really measured. `share` is 0 to 1. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
