/**
 * Runs the simulation (docs/simulation.md): `npm run simulate`.
 *
 *   --schedules N   how many; 100,000 without it
 *   --from S        the first seed; a fresh one without it
 *   --jobs N        processes beside each other; one for each processor without it
 *   --seed S        one schedule, told in full and made smaller when it fails
 *   --mutants       the faults put in on purpose, each of which must be found
 */
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { FLOORS, FLOORS_FROM_SCHEDULES, missedFloors } from "../test/simulation/floors.ts";
import { installHooks } from "../test/simulation/module-hooks.ts";
import { type Mutant, MUTANTS } from "../test/simulation/mutants.ts";

type Runner = typeof import("../test/simulation/run-schedules.ts");

/** Within so many every mutant is found; most within 50. None may be needed by chance: the seeds are fixed. */
const MUTANT_SCHEDULES_MAX = 400;
const SEEDS = 2 ** 31;

const { values } = parseArgs({
  options: {
    schedules: { type: "string", default: "100000" },
    from: { type: "string" },
    jobs: { type: "string", default: String(availableParallelism()) },
    seed: { type: "string" },
    mutants: { type: "boolean", default: false },
  },
});

/** Code of a process that was stopped runs on in JavaScript, and fails at its first touch of storage. */
function ignoreStoppedProcesses(): void {
  process.on("unhandledRejection", (reason) => {
    if (reason instanceof Error && reason.name === "ProcessGone") return;
    print(`a rejection that nobody handled: ${reason instanceof Error ? reason.stack : String(reason)}`);
    process.exitCode = 1;
  });
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--${name} takes a whole number from 1, not '${text}'`);
  return value;
}

async function runner(mutant?: Mutant): Promise<Runner> {
  const module = new URL("../test/simulation/run-schedules.ts", import.meta.url).href;
  return (await import(mutant === undefined ? module : `${module}?mutant=${mutant.name}`)) as Runner;
}

async function runHere(from: number, count: number): Promise<void> {
  const { runSchedules, isRepeatable } = await runner();
  if (!(await isRepeatable(from))) {
    print(`seed ${from} ran twice and differed: the simulation is not deterministic`);
    process.exitCode = 1;
  }
  const started = performance.now();
  const { ran, effects, failed, counts } = await runSchedules(from, count);
  const perSecond = Math.round((ran * 1_000) / (performance.now() - started));
  print(`seeds ${from} to ${from + ran - 1}: ${ran} schedules, ${effects} effects, ${perSecond} schedules per second`);
  for (const { seed, violations } of failed) {
    print(`seed ${seed} fails:\n  ${violations.join("\n  ")}\nreplay: npm run simulate -- --seed ${seed}`);
    process.exitCode = 1;
  }
  if (failed.length === 0 && ran >= FLOORS_FROM_SCHEDULES) checkFloors(counts, ran);
}

/** A set that a failure cut short says nothing about what happens in a whole one. */
function checkFloors(counts: ReadonlyMap<string, number>, ran: number): void {
  const missed = missedFloors(counts, ran);
  if (missed.length > 0) process.exitCode = 1;
  print(
    missed.length === 0 ? `all ${Object.keys(FLOORS).length} floors are met` : `too seldom:\n  ${missed.join("\n  ")}`,
  );
}

/** Further processes of this script share the seeds out. */
async function runBeside(from: number, count: number, jobs: number): Promise<void> {
  const started = performance.now();
  const share = Math.ceil(count / jobs);
  const codes = await Promise.all(
    Array.from({ length: jobs }, async (_, job) => {
      const mine = Math.min(share, count - job * share);
      return mine < 1
        ? 0
        : runChild(["--from", String(from + job * share), "--schedules", String(mine), "--jobs", "1"]);
    }),
  );
  const seconds = (performance.now() - started) / 1_000;
  print(`${count} schedules from seed ${from} in ${seconds.toFixed(0)} s, ${Math.round(count / seconds)} per second`);
  if (codes.some((code) => code !== 0)) process.exitCode = 1;
}

function runChild(args: readonly string[]): Promise<number> {
  const node = ["--max-semi-space-size=64", import.meta.filename, ...args];
  const child = spawn(process.execPath, node, { stdio: "inherit" });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code) => resolve(code ?? 1));
  });
}

async function runMutants(): Promise<void> {
  for (const mutant of MUTANTS) {
    const { runSchedules } = await runner(mutant);
    const { ran, failed } = await runSchedules(mutant.firstSeed ?? 1, MUTANT_SCHEDULES_MAX);
    const [found] = failed;

    print(
      found === undefined
        ? `NOT FOUND ${mutant.name} in ${ran} schedules (${mutant.breaks})`
        : `found ${mutant.name} after ${ran} schedules (${mutant.breaks}): ${found.violations[0]?.slice(0, 160)}`,
    );
    if (found === undefined) process.exitCode = 1;
  }
}

installHooks();
ignoreStoppedProcesses();
const count = numberOf("schedules", values.schedules);
const from = values.from === undefined ? randomInt(1, SEEDS - count) : numberOf("from", values.from);
const jobs = Math.min(numberOf("jobs", values.jobs), count);
if (values.seed !== undefined) {
  const { tellSchedule } = await runner();
  print(await tellSchedule(numberOf("seed", values.seed)));
} else if (values.mutants) await runMutants();
else if (jobs > 1) await runBeside(from, count, jobs);
else await runHere(from, count);
