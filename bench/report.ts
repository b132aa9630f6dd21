/** How a bench file in workerd hands rows to `bench/run.ts`: in its test's `meta`, which vitest's JSON report carries. */
import type { BenchRow } from "./bench-row.ts";

export interface ReportedMeta {
  rows?: readonly BenchRow[];
}

export function report(task: { meta: object }, rows: readonly BenchRow[]): void {
  (task.meta as ReportedMeta).rows = rows;
}
