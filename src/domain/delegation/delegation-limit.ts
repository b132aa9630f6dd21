/**
 * Which `task` calls of one answer may run: the per-run cap and the per-response limit (delegation-behaviour 5.4).
 * Owns the decision and the note. What is cut is named in the note, never dropped in silence.
 */
export interface DelegationLimits {
  /** Calls of one answer: what admission can really run at once. */
  readonly maxConcurrent: number;
  /** Delegations of one run; failed, cancelled and refused ones count. */
  readonly maxTotal: number;
}

export interface RequestedCall {
  readonly id: string;
  readonly description: string;
}

export interface DelegationCut {
  readonly cutIds: ReadonlySet<string>;
  readonly note: string;
  /** The run had no delegation left before this answer. */
  readonly exhausted: boolean;
}

/** `undefined` when every call may run. `prior`: delegations this run has used before this answer. */
export function decideCut(
  calls: readonly RequestedCall[],
  prior: number,
  limits: DelegationLimits,
): DelegationCut | undefined {
  const remaining = Math.max(0, limits.maxTotal - prior);
  const allowed = Math.min(limits.maxConcurrent, remaining);
  if (calls.length <= allowed) return undefined;
  const cut = calls.slice(allowed);
  return {
    cutIds: new Set(cut.map((call) => call.id)),
    note: remaining === 0 ? exhaustedNote(cut, limits) : partialNote(cut, allowed, limits),
    exhausted: remaining === 0,
  };
}

function exhaustedNote(cut: readonly RequestedCall[], { maxTotal }: DelegationLimits): string {
  return (
    `[SUBAGENT LIMIT REACHED] This run has used its subagent delegation limit of ${maxTotal}. ` +
    `Not run: ${names(cut)}. What the earlier subagents returned is what there is to answer from.`
  );
}

function partialNote(cut: readonly RequestedCall[], allowed: number, limits: DelegationLimits): string {
  const limit =
    allowed < limits.maxConcurrent
      ? `${allowed} of this run's ${limits.maxTotal} delegations were left`
      : `one answer may start ${limits.maxConcurrent}`;
  return `[SUBAGENT CALLS NOT RUN] ${limit}. Not run: ${names(cut)}. Ask for them again if they are still needed.`;
}

function names(cut: readonly RequestedCall[]): string {
  return cut.map((call) => `"${call.description}"`).join(", ");
}
