/** Runs schedules one after the other, and makes a failing one smaller. */
import { describePlan, type Plan, planOf } from "./plan.ts";
import { runSchedule } from "./schedule.ts";

export interface FailedSchedule {
  readonly seed: number;
  readonly violations: readonly string[];
}

export interface RunReport {
  readonly ran: number;
  readonly effects: number;
  readonly failed: readonly FailedSchedule[];
  /** How often each kind of thing happened in all of them. */
  readonly counts: ReadonlyMap<string, number>;
}

export async function runSchedules(from: number, count: number, stopAfter = 1): Promise<RunReport> {
  const failed: FailedSchedule[] = [];
  const counts = new Map<string, number>();
  let [ran, effects] = [0, 0];
  while (ran < count && failed.length < stopAfter) {
    const seed = from + ran;
    const result = await runSchedule(planOf(seed));
    ran += 1;
    effects += result.effects;
    for (const [what, times] of result.counts) counts.set(what, (counts.get(what) ?? 0) + times);
    if (result.violations.length > 0) failed.push({ seed, violations: result.violations });
  }
  return { ran, effects, failed, counts };
}

/** The same seed gives the same schedule, to the last effect: without it no failure could be replayed. */
export async function isRepeatable(seed: number): Promise<boolean> {
  const first = await runSchedule(planOf(seed), { isTracing: true });
  const second = await runSchedule(planOf(seed), { isTracing: true });
  return first.trace.join("\n") === second.trace.join("\n");
}

/** The plan without whatever it still fails without. */
export async function minimise(plan: Plan): Promise<Plan> {
  let smallest = plan;
  for (const part of ["faults", "requests"] as const) {
    for (const moment of plan[part]) {
      const smaller = { ...smallest, [part]: (smallest[part] as readonly unknown[]).filter((each) => each !== moment) };
      if ((await runSchedule(smaller)).violations.length > 0) smallest = smaller;
    }
  }
  return smallest;
}

/** All of one schedule, for whoever looks for its fault. */
export async function tellSchedule(seed: number): Promise<string> {
  const plan = planOf(seed);
  const { violations, trace, faults } = await runSchedule(plan, { isTracing: true });
  const parts = [`seed ${seed}`, describePlan(plan)];
  if (violations.length > 0) parts.push("the smallest plan that fails", describePlan(await minimise(plan)));
  return [...parts, "trace", ...trace, "faults told", ...faults, "violations", ...violations, ""].join("\n");
}
