/**
 * What to do with a run that storage calls running and that nobody drives: the object died under it.
 * Owns the base-checkpoint rule and the budgets (architecture section 5, Recovery). Checkpoints carry no run id, so the
 * only evidence that a run began is that the thread's head moved past the head it started from.
 *
 * Upholds P1 (every accepted run ends), P2 (committed work is not redone: past its base a run resumes with `null`) and
 * P4 (a deploy, and a wait for a slot, cost no attempt).
 */

/** PERSISTED in the run's row. Fields that older rows lack are optional. */
export interface RecoveryRecord {
  /** Recoveries without progress since `headCheckpointId` last moved. */
  readonly attempts: number;
  /** The newest checkpoint when recovery last looked, a child's included; a different one now is progress. */
  readonly headCheckpointId: string | null;
  /** Milliseconds since the epoch: where the window without progress begins. */
  readonly progressAt: number;
  /** Deploys and waits met since the last progress: they cost no attempt. */
  readonly deferrals?: number;
  /** Seen waiting for a slot since it was last started. */
  readonly waited?: boolean;
  /** Times the run ran out of memory. Progress does not take them back: such a run fails again a step later. */
  readonly outOfMemory?: number;
  /** The version of the Worker that started the run last; absent where a version is not known. */
  readonly version?: string;
}

export interface InterruptedRun {
  readonly cancelRequested: boolean;
  /** What the run was accepted with; `nothing` goes on from where the thread stood. */
  readonly start: "input" | "command" | "nothing";
  /** The interrupts that its command answers. */
  readonly answers: readonly string[];
  /** The thread's head when the run row was written; `null` on an empty thread. */
  readonly baseCheckpointId: string | null;
  readonly recovery: RecoveryRecord;
}

export interface RecoveryBudget {
  readonly attemptsMax: number;
  readonly noProgressMs: number;
  readonly outOfMemoryMax: number;
}

export type RecoveryDecision =
  /** Nothing of the run was committed: start it with its stored input. */
  | { readonly kind: "start_with_input"; readonly recovery: RecoveryRecord }
  /** Nothing was committed, or not all of it: issue the command again with the answers that are still asked for. */
  | { readonly kind: "start_with_command"; readonly answers: readonly string[]; readonly recovery: RecoveryRecord }
  /** Continue after the last committed step. */
  | { readonly kind: "resume"; readonly recovery: RecoveryRecord }
  /** Its work is done: the graph asks again, or stands at a breakpoint. Only its terminal commit is missing. */
  | { readonly kind: "wait" }
  /** The cancel was accepted before the crash; only its terminal commit is missing. */
  | { readonly kind: "finish_cancel" }
  | { readonly kind: "give_up"; readonly message: string };

/** What the thread's storage tells about a run of it. */
export interface RecoveryEvidence {
  readonly headCheckpointId: string | null;
  /** Of the run and its children: the head stands still while a child works. */
  readonly newestCheckpointId: string | null;
  /** The interrupts at the head that wait for an answer; asked for a run that answers some. */
  readonly pending: readonly string[];
  /** A child was asked further and its parent has not stored that yet: the head tells an older question. */
  readonly headIsStale: boolean;
  /** The run committed a step after which, or before whose next one, it was told to stop. */
  readonly atBreakpoint: boolean;
}

export interface RecoveryInput extends RecoveryEvidence {
  readonly run: InterruptedRun;
  readonly budget: RecoveryBudget;
  readonly now: number;
  /** Of the Worker that recovers; `undefined` where it is not known. */
  readonly version?: string | undefined;
}

/** Deploys and waits that cost no attempt; further ones do, so that nothing recovers for ever (P8). */
export const RECOVERY_DEFERRALS_MAX = 100;

export function decideRecovery(input: RecoveryInput): RecoveryDecision {
  const { run, budget, now } = input;
  if (run.cancelRequested) return { kind: "finish_cancel" };
  const started = input.headCheckpointId !== run.baseCheckpointId;
  if (isDone(input, started)) return { kind: "wait" };
  const recovery = nextRecord(input);
  const spent = findSpentBudget(recovery, budget, now);
  if (spent !== undefined) return { kind: "give_up", message: `recovery gave up: ${spent}` };
  if (started || run.start === "nothing") return { kind: "resume", recovery };
  if (run.start === "input") return { kind: "start_with_input", recovery };
  const answers = run.answers.filter((id) => input.pending.includes(id));
  // All used: another start of the command would answer what the graph asks now with what it asked before.
  if (run.answers.length > 0 && answers.length === 0) return { kind: "resume", recovery };
  return { kind: "start_with_command", answers, recovery };
}

/** Nothing is left to do but to say so. */
function isDone({ run, pending, headIsStale, atBreakpoint }: RecoveryInput, started: boolean): boolean {
  if (started) return atBreakpoint;
  if (run.answers.length === 0 || headIsStale || pending.length === 0) return false;
  return !run.answers.some((id) => pending.includes(id));
}

function nextRecord({ run: { recovery }, newestCheckpointId, now, version }: RecoveryInput): RecoveryRecord {
  const progressed = newestCheckpointId !== recovery.headCheckpointId;
  const deferrals = progressed ? 0 : (recovery.deferrals ?? 0);
  const isDeferred = (isDeploy(recovery, version) || recovery.waited === true) && deferrals < RECOVERY_DEFERRALS_MAX;
  const attempts = (progressed ? 0 : recovery.attempts) + (isDeferred ? 0 : 1);
  // The window begins with the first recovery, not with the last progress: an object that slept was not at work.
  const isWindowStart = progressed || isDeferred || recovery.attempts === 0;
  return {
    attempts,
    headCheckpointId: newestCheckpointId,
    progressAt: isWindowStart ? now : recovery.progressAt,
    ...(isDeferred ? { deferrals: deferrals + 1 } : deferrals === 0 ? {} : { deferrals }),
    ...(recovery.outOfMemory === undefined ? {} : { outOfMemory: recovery.outOfMemory }),
    ...(version === undefined ? {} : { version }),
  };
}

function isDeploy(recovery: RecoveryRecord, version: string | undefined): boolean {
  return version !== undefined && recovery.version !== undefined && version !== recovery.version;
}

function findSpentBudget(recovery: RecoveryRecord, budget: RecoveryBudget, now: number): string | undefined {
  const outOfMemory = recovery.outOfMemory ?? 0;
  if (outOfMemory > budget.outOfMemoryMax) return `the run exceeded the memory limit ${outOfMemory} times`;
  if (recovery.attempts > budget.attemptsMax) return `${budget.attemptsMax} attempts without progress`;
  const idleMs = now - recovery.progressAt;
  if (recovery.attempts <= 1 || idleMs <= budget.noProgressMs) return undefined;
  return `no progress for ${Math.round(idleMs / 1_000)} s`;
}

/** The record of a run that is accepted now. */
export function newRecoveryRecord(
  headCheckpointId: string | null,
  { now, version }: { readonly now: number; readonly version?: string | undefined },
): RecoveryRecord {
  return { attempts: 0, headCheckpointId, progressAt: now, ...(version === undefined ? {} : { version }) };
}

/** The run ran out of memory: to be stored where there still is some, before the run is looked at again. */
export function noteOutOfMemory(recovery: RecoveryRecord): RecoveryRecord {
  return { ...recovery, outOfMemory: (recovery.outOfMemory ?? 0) + 1 };
}

/** The run was seen waiting for a slot; the same record when that is known already. */
export function noteWaiting(recovery: RecoveryRecord): RecoveryRecord {
  return recovery.waited === true ? recovery : { ...recovery, waited: true };
}
