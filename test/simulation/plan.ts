/**
 * What a seed means: what clients ask for, when, and which faults come in between. Plain data, so that a failing
 * schedule is made smaller by taking faults out. Moments are counted in effects, not in time.
 */
import { CANCEL_ACTIONS, type CancelAction, type MultitaskStrategy } from "../../src/domain/run/multitask.ts";
import { Random } from "./random.ts";
import type { StepKind } from "./step-state.ts";

export type Request =
  | { readonly kind: "run"; readonly thread: number; readonly run: RunWish }
  | {
      readonly kind: "cancel";
      readonly thread: number;
      readonly wait: boolean;
      readonly action: CancelAction;
      readonly nth: number;
    }
  /** Goes on from where the thread stands. */
  | { readonly kind: "command"; readonly thread: number; readonly command: CommandWish }
  /** Ends one delegation; its run goes on. */
  | { readonly kind: "cancel_task"; readonly thread: number; readonly nth: number }
  | { readonly kind: "batch"; readonly thread: number; readonly batch: BatchWish }
  | { readonly kind: "cancel_batch"; readonly thread: number; readonly nth: number }
  /** Somebody else asks the same ids of a thread of the same name (P7). */
  | { readonly kind: "foreign"; readonly thread: number }
  | { readonly kind: "read"; readonly thread: number };

export interface RunWish {
  readonly steps: readonly StepKind[];
  readonly strategy: MultitaskStrategy;
  readonly afterSeconds: number | null;
  /** Creates of one `Idempotency-Key` are one run. */
  readonly key: string | null;
}

export interface CommandWish {
  /** By the question that its client read, or to whatever is asked. */
  readonly answer: "named" | "any" | null;
  readonly update: boolean;
  readonly goto: boolean;
  readonly strategy: MultitaskStrategy;
  readonly key: string | null;
}

export interface BatchWish {
  readonly items: readonly ("done" | "fail" | "fail_once" | "defer" | "throw")[];
  readonly maxRunning: number;
  readonly maxLive: number;
  readonly maxAttempts: number;
  /** Submissions of one key are one batch (B9). */
  readonly key: string | null;
}

export type Fault =
  | { readonly kind: "crash"; readonly thread: number }
  /** Another instance is in its place and it goes on. */
  | { readonly kind: "zombie"; readonly thread: number }
  | { readonly kind: "die_at_commit"; readonly thread: number; readonly commits: number }
  | { readonly kind: "crash_consumer" | "lose" | "double" | "dead_letter"; readonly nth: number }
  | { readonly kind: "fail_d1"; readonly when: "before" | "after"; readonly times: number }
  | { readonly kind: "fail_send" }
  | { readonly kind: "clock"; readonly whose: "objects" | "consumers"; readonly byMs: number }
  | { readonly kind: "deploy"; readonly maxRunning: number }
  | { readonly kind: "cron" };

export interface Moment<T> {
  readonly at: number;
  readonly what: T;
}

export interface Plan {
  readonly seed: number;
  readonly threads: readonly { readonly owner: string; readonly threadId: string }[];
  readonly maxRunning: number;
  /** Recoveries without progress after which a run is given up. */
  readonly recoveryAttempts: number;
  /** The objects begin without tables. */
  readonly isNew: boolean;
  readonly requests: readonly Moment<Request>[];
  readonly faults: readonly Moment<Fault>[];
}

const EFFECTS_PER_REQUEST = 14;

export function planOf(seed: number): Plan {
  const random = new Random(seed, "plan");
  const threads = random.chance(0.75) ? ["alice"] : ["alice", "bob"];
  const count = 1 + random.int(5);
  // A run that is taken back before D1 has heard of it, by an instance that another one replaces.
  const isTakenBack = random.chance(0.06);
  const horizon = 10 + count * EFFECTS_PER_REQUEST;
  const moments = <T>(many: number, make: () => T): Moment<T>[] =>
    Array.from({ length: many }, () => ({ at: random.int(horizon), what: make() }));
  const requests = inOrder([
    { at: 0, what: firstRequest(random) },
    ...moments(count, () => request(random, threads.length)),
    ...answers(random, { threads: threads.length, horizon, count }),
    ...(random.chance(0.15) ? endedChild(random) : []),
    ...(random.chance(0.1) ? twiceEnded(random) : []),
    ...(isTakenBack ? [{ at: 1, what: TAKEN_BACK }] : []),
  ]);
  // Between the commits of one request is where an object dies worst, and chance alone seldom strikes there.
  const struck = requests.filter(() => random.chance(0.2));
  const deaths = struck.map(({ at, what: { thread } }): Moment<Fault> => {
    return { at, what: { kind: "die_at_commit", thread, commits: random.int(4) } };
  });
  return {
    seed,
    // Thread ids are chosen by clients, so two owners may choose the same.
    threads: threads.map((owner) => ({ owner, threadId: "t" })),
    maxRunning: 1 + random.int(4),
    recoveryAttempts: random.pick([1, 3, 10]),
    isNew: random.chance(0.1),
    requests,
    faults: inOrder([
      ...deaths,
      ...moments(random.int(6), () => fault(random, threads.length)),
      ...(random.chance(0.1) ? deploysInARow(random) : []),
      ...(isTakenBack ? [{ at: 2 + random.int(3), what: { kind: "zombie", thread: 0 } as const }] : []),
    ]),
  };
}

function inOrder<T>(moments: readonly Moment<T>[]): Moment<T>[] {
  return moments.toSorted((a, b) => a.at - b.at);
}

function firstRequest(random: Random): Request {
  return { kind: "run", thread: 0, run: { steps: steps(random), strategy: "reject", afterSeconds: null, key: null } };
}

/** Questions are seldom answered by chance alone. */
function answers(
  random: Random,
  { threads, horizon, count }: { threads: number; horizon: number; count: number },
): Moment<Request>[] {
  if (!random.chance(0.3)) return [];
  const early = {
    at: 2 + random.int(6),
    what: { kind: "run", thread: 0, run: { ...run(random), steps: asking(random) } },
  };
  const later = Array.from({ length: 1 + random.int(Math.min(3, count)) }, () => {
    const what = { kind: "command", thread: random.int(threads), command: command(random) } as const;
    return { at: 8 + random.int(horizon), what };
  });
  return [early as Moment<Request>, ...later];
}

/** A child is in flight for a few effects only. */
function endedChild(random: Random): Moment<Request>[] {
  const at = 2 + random.int(10);
  const child = { ...run(random), steps: ["delegate", ...steps(random).slice(0, 2)] satisfies StepKind[] };
  return [
    { at, what: { kind: "run", thread: 0, run: { ...child, afterSeconds: null } } },
    { at: at + 2 + random.int(8), what: { kind: "cancel_task", thread: 0, nth: 0 } },
  ];
}

const TAKEN_BACK: Request = { kind: "cancel", thread: 0, wait: false, action: "rollback", nth: 0 };

/** Who asks twice may mean something else the second time. */
function twiceEnded(random: Random): Moment<Request>[] {
  const at = 1 + random.int(4);
  return [random.pick(CANCEL_ACTIONS), "rollback" as const].map((action, nth) => {
    return { at: at + nth, what: { kind: "cancel", thread: 0, wait: false, action, nth: 0 } };
  });
}

function asking(random: Random): StepKind[] {
  return [...steps(random).slice(0, 1), "ask", ...steps(random).slice(0, 2)];
}

function command(random: Random): CommandWish {
  const answer = random.pick(["named", "named", "any", null] as const);
  return {
    answer,
    update: random.chance(answer === null ? 0.6 : 0.3),
    goto: answer === null && random.chance(0.3),
    strategy: random.pick(["reject", "interrupt", "rollback", "enqueue"]),
    key: random.chance(0.1) ? `command${random.int(2)}` : null,
  };
}

function run(random: Random): RunWish {
  return {
    steps: steps(random),
    strategy: random.pick(["reject", "interrupt", "rollback", "enqueue", "enqueue"]),
    afterSeconds: random.chance(0.1) ? 1 + random.int(20) : null,
    key: random.chance(0.2) ? `key${random.int(2)}` : null,
  };
}

function steps(random: Random): StepKind[] {
  return Array.from({ length: random.int(5) }, () => {
    const draw = random.next();
    if (draw < 0.06) return "fail";
    if (draw < 0.1) return "ask";
    if (draw < 0.18) return "fan_out";
    return draw < 0.38 ? "delegate" : "work";
  });
}

function request(random: Random, threads: number): Request {
  const thread = random.int(threads);
  const draw = random.next();
  if (draw < 0.39) return { kind: "run", thread, run: run(random) };
  if (draw < 0.43) return { kind: "command", thread, command: command(random) };
  if (draw < 0.46) return { kind: "cancel_task", thread, nth: random.int(3) };
  if (draw < 0.6) {
    const action = random.chance(0.3) ? "rollback" : "interrupt";
    return { kind: "cancel", thread, wait: random.chance(0.3), action, nth: random.chance(0.6) ? 0 : random.int(4) };
  }
  if (draw < 0.8) return { kind: "batch", thread, batch: batch(random) };
  if (draw < 0.87) return { kind: "cancel_batch", thread, nth: random.int(3) };
  return draw < 0.94 ? { kind: "read", thread } : { kind: "foreign", thread };
}

function batch(random: Random): BatchWish {
  const maxRunning = 1 + random.int(3);
  const ends = ["done", "done", "done", "done", "fail", "fail_once", "defer", "throw"] as const;
  return {
    items: Array.from({ length: 1 + random.int(6) }, () => random.pick(ends)),
    maxRunning,
    maxLive: maxRunning + random.int(3),
    maxAttempts: 1 + random.int(3),
    key: random.chance(0.4) ? `key${random.int(2)}` : null,
  };
}

function fault(random: Random, threads: number): Fault {
  const thread = random.int(threads);
  const nth = random.int(8);
  const draw = random.next();
  if (draw < 0.15) return { kind: "crash", thread };
  if (draw < 0.4) return { kind: "die_at_commit", thread, commits: random.int(8) };
  if (draw < 0.52) return { kind: "zombie", thread };
  if (draw < 0.62) return { kind: "crash_consumer", nth };
  if (draw < 0.68) return { kind: "lose", nth };
  if (draw < 0.74) return { kind: "double", nth };
  if (draw < 0.77) return { kind: "dead_letter", nth };
  if (draw < 0.86) return { kind: "fail_d1", when: random.chance(0.5) ? "before" : "after", times: 1 + random.int(3) };
  if (draw < 0.88) return { kind: "fail_send" };
  if (draw < 0.93) return clock(random);
  return draw < 0.98 ? { kind: "deploy", maxRunning: 1 + random.int(4) } : { kind: "cron" };
}

/** Each takes the object from under a run that has hardly gone on since the one before. */
function deploysInARow(random: Random): Moment<Fault>[] {
  let at = 1 + random.int(3);
  return Array.from({ length: 3 }, () => {
    at += 1 + random.int(4);
    return { at, what: { kind: "deploy", maxRunning: 1 + random.int(4) } };
  });
}

function clock(random: Random): Fault {
  const byMs = random.pick([-3_600_000, -20_000, -500, 500, 20_000, 3_600_000]);
  return { kind: "clock", whose: random.chance(0.5) ? "objects" : "consumers", byMs };
}

export function describePlan(plan: Plan): string {
  const told = [
    ...plan.requests.map(({ at, what }) => ({ at, text: `asks   ${JSON.stringify(what)}` })),
    ...plan.faults.map(({ at, what }) => ({ at, text: `fault  ${JSON.stringify(what)}` })),
  ];
  const lines = told.toSorted((a, b) => a.at - b.at).map(({ at, text }) => `  ${String(at).padStart(4)}  ${text}`);
  return [
    `  threads of ${plan.threads.map(({ owner }) => owner).join(" and ")}, max_running ${plan.maxRunning}, recovery_attempts ${plan.recoveryAttempts}`,
    ...lines,
  ].join("\n");
}
