/**
 * When delegating is worth it: the one wording that definitions, the `task` tool and the lead prompt share, so that they
 * cannot contradict each other. With one call an answer nothing may speak of doing things at the same time.
 */

/** Ends every subagent's description. */
export const BENEFIT_CLAUSE = "Use it only when the benefit clearly outweighs the overhead of delegating.";

const COST =
  "clearly outweighs the overhead: starting the subagent, discovering the same things twice, putting results together.";

export function benefitRule(isParallel: boolean): string {
  return isParallel
    ? `Use it only when parallel latency, a specialist's ability or an isolated context ${COST}`
    : `Use it only when a specialist's ability or an isolated context is a material benefit and ${COST}`;
}

export const PARALLEL_CALLS_NOTE = "Several calls in one message run in parallel; they must not depend on each other.";
