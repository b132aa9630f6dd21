/**
 * `npm run bench`: runs the parts one after the other, prints each one's table as it ends, and writes
 * `bench/results.json`. Exits 1 when a bound on billable units is passed or a part fails; times are printed, never
 * asserted. `npm run bench -- --only <part>` runs one part and leaves the file as it was.
 *
 * Each part is a process of its own with a time limit, and all of them share `TOTAL_MS`: a part that hangs is ended with
 * whatever it started, fails by name, and the others still run.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
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

const TOTAL_MS = 690_000;
/** What a part that is ended gets to end what it started. */
const GRACE_MS = 10_000;
const TERMINATED = 143;

const PARTS: readonly BenchPart[] = [
  { name: "run-rows", secondsMax: 120, run: () => runInWorkerd("bench/run-rows.bench.ts") },
  { name: "peers", secondsMax: 330, run: peersBench },
  { name: "readers", secondsMax: 180, run: readersBench },
  { name: "http", secondsMax: 120, run: httpRunsBench },
  { name: "delegations", secondsMax: 150, run: delegationsBench },
  { name: "batches", secondsMax: 180, run: () => runInWorkerd("bench/batches.bench.ts") },
  { name: "bundle", secondsMax: 90, run: bundleBench },
  { name: "messages", secondsMax: 60, run: messageWritesBench },
];

const OPTIONS = {
  only: { type: "string" },
  /** Fewer and shorter measurements where a part has them: to see that it works, not what it says. */
  short: { type: "boolean" },
  /** Where a part leaves its rows for the process that runs all of them. */
  rows: { type: "string" },
} as const;

async function main(): Promise<number> {
  const { only, short = false, rows } = parseArgs({ options: OPTIONS }).values;
  if (only === undefined) return runAll(short);
  const part = PARTS.find(({ name }) => name === only);
  if (part === undefined) {
    console.error(`--only: no part '${only}'; parts: ${PARTS.map(({ name }) => name).join(", ")}`);
    return 2;
  }
  const measured = await runPart(part, short);
  if (measured === undefined) return 1;
  if (rows !== undefined) writeFileSync(rows, JSON.stringify(measured));
  return measured.some(isPastBound) ? 1 : 0;
}

async function runPart(part: BenchPart, short: boolean): Promise<BenchRow[] | undefined> {
  const from = performance.now();
  try {
    const rows = await part.run({ short });
    console.log(toTable(rows));
    console.log(`${part.name}: ${rows.length} rows in ${secondsSince(from)} s\n`);
    return rows;
  } catch (error) {
    console.error(`bench: ${part.name} failed`, error);
    return undefined;
  }
}

async function runAll(short: boolean): Promise<number> {
  const from = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "deputy-bench-rows-"));
  const rows: BenchRow[] = [];
  const failed: string[] = [];
  for (const { name, secondsMax } of PARTS) {
    const left = TOTAL_MS - (performance.now() - from);
    const file = join(folder, `${name}.json`);
    console.log(`bench: ${name} ...`);
    const how = await runApart(["--only", name, "--rows", file, ...(short ? ["--short"] : [])], {
      limitMs: Math.min(secondsMax * 1_000, left),
    });
    if (existsSync(file)) rows.push(...(JSON.parse(readFileSync(file, "utf8")) as BenchRow[]));
    else failed.push(`${name} (${how})`);
  }
  rmSync(folder, { recursive: true, force: true });
  if (!short) writeFileSync(RESULTS, `${JSON.stringify(rows, null, 2)}\n`);
  const past = rows.filter(isPastBound);
  console.log(
    `${rows.length} rows in ${secondsSince(from)} s, ${past.length} past their bound, ${failed.length} parts failed`,
  );
  for (const { name, value, bound } of past) console.log(`past its bound: ${name}, ${value}, at most ${bound}`);
  if (failed.length > 0) console.log(`failed: ${failed.join(", ")}`);
  return past.length > 0 || failed.length > 0 ? 1 : 0;
}

/** Resolves with how the process ended. */
function runApart(args: readonly string[], { limitMs }: { limitMs: number }): Promise<string> {
  if (limitMs <= 0) return Promise.resolve("no time was left");
  const child = spawn(process.execPath, [import.meta.filename, ...args], { stdio: "inherit" });
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    child.kill("SIGTERM");
  }, limitMs);
  const over = setTimeout(() => child.kill("SIGKILL"), limitMs + GRACE_MS);
  return new Promise((ended) => {
    child.once("close", (code) => {
      clearTimeout(late);
      clearTimeout(over);
      ended(isLate ? `not done in ${(limitMs / 1_000).toFixed(0)} s` : `ended with ${String(code)}`);
    });
  });
}

function toTable(rows: readonly BenchRow[]): string {
  const width = Math.max(...rows.map((row) => row.name.length), 0);
  const lines = rows.map((row) => {
    const bound = row.bound === undefined ? "" : `at most ${row.bound}${isPastBound(row) ? "  PAST" : ""}`;
    return `${row.name.padEnd(width)}  ${String(row.value).padStart(9)}  ${row.unit.padEnd(16)} ${bound}`.trimEnd();
  });
  return lines.join("\n");
}

function secondsSince(from: number): string {
  return ((performance.now() - from) / 1_000).toFixed(0);
}

// What was started ends with this process (`dev-server.ts`, `workerd-part.ts`), also when its time is up.
process.on("SIGTERM", () => process.exit(TERMINATED));
process.exit(await main());
