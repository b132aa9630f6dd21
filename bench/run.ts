/**
 * `npm run bench`: runs the parts one after the other, prints one table and writes `bench/results.json`. Exits 1 when a
 * bound on billable units is passed or a part fails; times are printed, never asserted. `npm run bench -- --only <part>`
 * runs one part and leaves the file as it was.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type BenchPart, type BenchRow, isPastBound } from "./bench-row.ts";
import { bundleBench } from "./bundle.ts";
import { delegationsBench } from "./delegations.ts";
import { httpRunsBench } from "./http-runs.ts";
import { messageWritesBench } from "./message-writes.ts";
import { peersBench } from "./peers.ts";
import { readersBench } from "./readers.ts";
import { runInWorkerd } from "./workerd-part.ts";

const RESULTS = join(import.meta.dirname, "results.json");

const PARTS: readonly BenchPart[] = [
  { name: "run-rows", run: () => runInWorkerd("bench/run-rows.bench.ts") },
  { name: "batches", run: () => runInWorkerd("bench/batches.bench.ts") },
  { name: "delegations", run: delegationsBench },
  { name: "http", run: httpRunsBench },
  { name: "readers", run: readersBench },
  { name: "peers", run: peersBench },
  { name: "bundle", run: bundleBench },
  { name: "messages", run: messageWritesBench },
];

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { only: { type: "string" } } });
  const parts = PARTS.filter((part) => values.only === undefined || part.name === values.only);
  if (parts.length === 0) {
    console.error(`--only: no part '${values.only}'; parts: ${PARTS.map((part) => part.name).join(", ")}`);
    return 2;
  }
  const from = performance.now();
  const rows: BenchRow[] = [];
  let failed = 0;
  for (const part of parts) {
    console.error(`bench: ${part.name} ...`);
    try {
      rows.push(...(await part.run()));
    } catch (error) {
      failed += 1;
      console.error(`bench: ${part.name} failed`, error);
    }
  }
  console.log(toTable(rows));
  if (values.only === undefined) writeFileSync(RESULTS, `${JSON.stringify(rows, null, 2)}\n`);
  else console.log(`(--only: ${RESULTS} is left as it was)`);
  const past = rows.filter(isPastBound);
  const seconds = ((performance.now() - from) / 1_000).toFixed(0);
  console.log(`${rows.length} rows in ${seconds} s, ${past.length} past their bound, ${failed} parts failed`);
  return past.length > 0 || failed > 0 ? 1 : 0;
}

function toTable(rows: readonly BenchRow[]): string {
  const width = Math.max(...rows.map((row) => row.name.length), 0);
  const lines = rows.map((row) => {
    const bound = row.bound === undefined ? "" : `at most ${row.bound}${isPastBound(row) ? "  PAST" : ""}`;
    return `${row.name.padEnd(width)}  ${String(row.value).padStart(9)}  ${row.unit.padEnd(16)} ${bound}`.trimEnd();
  });
  return lines.join("\n");
}

process.exitCode = await main();
