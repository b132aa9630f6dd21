/**
 * What a seed means: what clients ask for, when, and which faults come in between. Plain data, so that a failing
 * schedule is made smaller by taking faults out. Moments are counted in effects, not in time.
 */
import type { CancelAction, MultitaskStrategy } from "../../src/domain/run/multitask.ts";
import { Random } from "./random.ts";
import type { StepKind } from "./step-graph.ts";

export type Request =
  | { readonly kind: "run"; readonly thread: number; readonly run: RunWish }
  | {
      readonly kind: "cancel";
      readonly thread: number;
      readonly wait: boolean;
      readonly action: CancelAction;
      readonly nth: number;
    }
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
  const horizon = 10 + count * EFFECTS_PER_REQUEST;
  const moments = <T>(many: number, make: () => T): Moment<T>[] =>
    Array.from({ length: many }, () => ({ at: random.int(horizon), what: make() }));
  const requests = inOrder([
    { at: 0, what: firstRequest(random) },
    ...moments(count, () => request(random, threads.length)),
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
    isNew: random.chance(0.1),
    requests,
    faults: inOrder([...deaths, ...moments(random.int(6), () => fault(random, threads.length))]),
  };
}

function inOrder<T>(moments: readonly Moment<T>[]): Moment<T>[] {
  return moments.toSorted((a, b) => a.at - b.at);
}

function firstRequest(random: Random): Request {
  return { kind: "run", thread: 0, run: { steps: steps(random), strategy: "reject", afterSeconds: null, key: null } };
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
    if (random.chance(0.06)) return "fail";
    return random.chance(0.3) ? "delegate" : "work";
  });
}

function request(random: Random, threads: number): Request {
  const thread = random.int(threads);
  const draw = random.next();
  if (draw < 0.45) return { kind: "run", thread, run: run(random) };
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
    `  threads of ${plan.threads.map(({ owner }) => owner).join(" and ")}, max_running ${plan.maxRunning}`,
    ...lines,
  ].join("\n");
}
