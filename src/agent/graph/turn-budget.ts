/**
 * The turn budget: how many model turns a run may take, counted in the `run_progress` channel (R89).
 * Owns the count and its error. Invariant: LangGraph's recursion limit, set from `recursionLimitFor`, never fires first.
 */
import type { RunProgress } from "../thread-state/thread-state.ts";

/** The name clients of LangGraph's API look for, with our own reason. State is kept at the last committed step. */
export class TurnBudgetError extends Error {
  override readonly name = "GraphRecursionError";
  readonly maxTurns: number;

  constructor(agentName: string, maxTurns: number) {
    super(`'${agentName}' has used its ${maxTurns} model turns in this run without ending it`);
    this.maxTurns = maxTurns;
  }
}

/** A turn is a model step and a tools step; one more model step finds the budget spent, and one step is spare. */
export function recursionLimitFor(maxTurns: number): number {
  return 2 * maxTurns + 2;
}

/** What the channel says about this run. Another run's count starts again; without run ids a thread is one run. */
export function progressOf(stored: RunProgress | undefined, runId: string | undefined): RunProgress | undefined {
  return stored !== undefined && stored.run_id === (runId ?? null) ? stored : undefined;
}
