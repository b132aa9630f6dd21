/**
 * How many delegations each run has made, the lead's and its children's together. The lead's answers are cut at the run's
 * cap by the limit hook; a child that may delegate gets what is left of the same cap, so that a run's fan-out does not
 * grow with its depth (P8).
 * Counts in memory: after a crash the lead's come from its ledger, those of children that have ended are forgotten.
 */
import { RecentMap } from "../runtime/recent-map.ts";

/** Runs of one process whose children delegate at the same time; an object has one. */
export const COUNTED_RUNS_MAX = 1_000;

export class RunDelegations {
  readonly #runs = new RecentMap<Set<string>>(COUNTED_RUNS_MAX);

  /** Calls of the lead's: held to the cap already. Without a run's id all calls count together. */
  add(runId: string | undefined, taskIds: readonly string[]): void {
    const counted = this.#of(runId);
    for (const taskId of taskIds) counted.add(taskId);
  }

  /** A child's call. A repeat of one that was admitted is admitted. */
  admit(runId: string | undefined, taskId: string, max: number): boolean {
    const counted = this.#of(runId);
    if (!counted.has(taskId) && counted.size >= max) return false;
    counted.add(taskId);
    return true;
  }

  #of(runId: string | undefined): Set<string> {
    return this.#runs.take(runId ?? "", () => new Set());
  }
}
