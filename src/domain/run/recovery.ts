/**
 * What to do with a run that storage calls running and that nobody drives: the object died under it.
 * Owns the base-checkpoint rule and the budgets (architecture section 5, Recovery). Checkpoints carry no run id, so the
 * only evidence that a run began is that the thread's head moved past the head it started from.
 *
 * Upholds P1 (every accepted run ends) and P2 (committed work is not redone: past its base a run resumes with `null`).
 */

export interface RecoveryRecord {
  /** Recoveries without progress since `headCheckpointId` last moved. */
  readonly attempts: number;
  /** The newest checkpoint when recovery last looked, a child's included; a different one now is progress. */
  readonly headCheckpointId: string | null;
  /** Milliseconds since the epoch of the last progress seen. */
  readonly progressAt: number;
}

export interface InterruptedRun {
  readonly cancelRequested: boolean;
  readonly hasInput: boolean;
  /** The thread's head when the run row was written; `null` on an empty thread. */
  readonly baseCheckpointId: string | null;
  readonly recovery: RecoveryRecord;
}

export interface RecoveryBudget {
  readonly attemptsMax: number;
  readonly noProgressMs: number;
}

export type RecoveryDecision =
  /** Nothing of the run was committed: start it with its stored input. */
  | { readonly kind: "start_with_input"; readonly recovery: RecoveryRecord }
  /** Continue after the last committed step. */
  | { readonly kind: "resume"; readonly recovery: RecoveryRecord }
  /** The cancel was accepted before the crash; only its terminal commit is missing. */
  | { readonly kind: "finish_cancel" }
  | { readonly kind: "give_up"; readonly message: string };

export interface RecoveryInput {
  readonly run: InterruptedRun;
  readonly headCheckpointId: string | null;
  /** Of the run and its children: the head stands still while a child works. */
  readonly newestCheckpointId: string | null;
  readonly budget: RecoveryBudget;
  readonly now: number;
}

export function decideRecovery(input: RecoveryInput): RecoveryDecision {
  const { run, headCheckpointId, newestCheckpointId, budget, now } = input;
  if (run.cancelRequested) return { kind: "finish_cancel" };
  const progressed = newestCheckpointId !== run.recovery.headCheckpointId;
  const recovery: RecoveryRecord = progressed
    ? { attempts: 1, headCheckpointId: newestCheckpointId, progressAt: now }
    : { ...run.recovery, attempts: run.recovery.attempts + 1 };
  if (recovery.attempts > budget.attemptsMax) {
    return {
      kind: "give_up",
      message: `recovery gave up: ${budget.attemptsMax} attempts without progress`,
    };
  }
  const idleMs = now - recovery.progressAt;
  if (recovery.attempts > 1 && idleMs > budget.noProgressMs) {
    return { kind: "give_up", message: `recovery gave up: no progress for ${Math.round(idleMs / 1_000)} s` };
  }
  const started = headCheckpointId !== run.baseCheckpointId;
  return started || !run.hasInput ? { kind: "resume", recovery } : { kind: "start_with_input", recovery };
}
