/**
 * What happens to a new run on a thread, decided over its active runs alone: it starts, it waits its turn as `pending`, or
 * it is refused; and which active runs end for it, and how. A thread has at most one run that is not pending, and runs
 * start in the order of their acceptance: a later one never overtakes one that waits, whatever it waits for.
 * Owns the words of the strategies and of a cancel's action. Pure: who stores and acts is `durable-objects/run-*.ts`.
 */
import { err, ok, type Result } from "../shared/result.ts";
import { isTerminal, type RunStatus } from "./run-status.ts";

export const MULTITASK_STRATEGIES = ["reject", "interrupt", "rollback", "enqueue"] as const;
export type MultitaskStrategy = (typeof MULTITASK_STRATEGIES)[number];

/** How a run ends that somebody ended: what it committed stays, or it is as if the run had never been. PERSISTED. */
export const CANCEL_ACTIONS = ["interrupt", "rollback"] as const;
export type CancelAction = (typeof CANCEL_ACTIONS)[number];

/** Runs of a thread that wait for their turn. Each holds its whole create, so they are few rather than many. */
export const PENDING_RUNS_MAX = 100;

export interface ActiveRun {
  readonly runId: string;
  readonly status: RunStatus;
  /** The action that was stored with a request to end it. */
  readonly cancelAction?: CancelAction | undefined;
  /** A pending run is due from then on: milliseconds since the epoch. */
  readonly dueAt?: number | undefined;
}

export interface NewRun {
  readonly strategy: MultitaskStrategy;
  /** It asked to start later. */
  readonly isDelayed: boolean;
}

export interface EndingRun {
  readonly runId: string;
  readonly action: CancelAction;
}

export interface StartDecision {
  readonly kind: "start_now" | "wait";
  /** Runs that end for the new one, oldest first. */
  readonly cancel: readonly EndingRun[];
}

export type MultitaskRefusal =
  | { readonly reason: "thread_busy"; readonly runId: string }
  | { readonly reason: "queue_full"; readonly limit: number };

export function decideStart(
  runs: readonly ActiveRun[],
  { strategy, isDelayed }: NewRun,
): Result<StartDecision, MultitaskRefusal> {
  const active = runs.filter((run) => !isTerminal(run.status));
  const [oldest] = active;
  if (oldest === undefined) return ok({ kind: isDelayed ? "wait" : "start_now", cancel: [] });
  if (strategy === "reject") return err({ reason: "thread_busy", runId: oldest.runId });
  if (strategy !== "enqueue") {
    const ending = active.filter((run) => isStronger(strategy, run.cancelAction));
    return ok({ kind: "wait", cancel: ending.map(({ runId }) => ({ runId, action: strategy })) });
  }
  const pending = active.filter((run) => run.status === "pending").length;
  if (pending >= PENDING_RUNS_MAX) return err({ reason: "queue_full", limit: PENDING_RUNS_MAX });
  return ok({ kind: "wait", cancel: [] });
}

/** A request to end a run outdoes an earlier one only by taking back what the run did. */
export function isStronger(action: CancelAction, stored: CancelAction | undefined): boolean {
  return stored === undefined || (action === "rollback" && stored === "interrupt");
}

export type NextStart =
  | { readonly kind: "start"; readonly runId: string }
  /** The run whose turn it is asked to start later. */
  | { readonly kind: "due"; readonly at: number }
  | { readonly kind: "none" };

/** Which run starts now. `runs` are the thread's active ones, oldest first. */
export function decideNext(runs: readonly ActiveRun[], now: number): NextStart {
  const [first] = runs.filter((run) => !isTerminal(run.status));
  if (first === undefined || first.status !== "pending") return { kind: "none" };
  const at = first.dueAt ?? 0;
  return at <= now ? { kind: "start", runId: first.runId } : { kind: "due", at };
}
