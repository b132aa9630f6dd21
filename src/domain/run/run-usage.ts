/**
 * What a run's model calls used, by caller and model: the run record's share of delegation-behaviour 1.6.
 * Owns the sums and their bound. Reported counts and Deputy's own estimates are never added up with each other, and a
 * count nobody gave is absent, not zero (R67). Pure: who counts an answer once is `commit-events.ts`.
 */

export interface TokenCounts {
  /** Answers of the model these counts are of. */
  readonly answers: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
  /** Of the input; only when positive. */
  readonly cache_read_tokens?: number;
}

/** PERSISTED in the outbox's last row and in the run row. */
export interface CallerUsage {
  /** `lead_agent`, or `subagent:<name>`. */
  readonly caller: string;
  /** As the provider names it; null when an answer does not say. */
  readonly model_name: string | null;
  /** What providers reported. */
  readonly reported?: TokenCounts;
  /** What Deputy estimated for answers whose provider reported nothing. */
  readonly estimated?: TokenCounts;
}

export const LEAD_CALLER = "lead_agent";

export function subagentCaller(agentName: string): string {
  return `subagent:${agentName}`;
}

/** Pairs of caller and model a run tells apart: six delegations and their own, on several models, stay below it. */
export const RUN_USAGE_ENTRIES_MAX = 100;

/** Who answers are counted under past the bound: the sums stay whole, the split is lost. */
export const FURTHER_CALLERS = "further";

/** `added` one after the other onto `usage`, which keeps its order. */
export function addUsage(usage: readonly CallerUsage[], added: readonly CallerUsage[]): readonly CallerUsage[] {
  return added.reduce(addEntry, usage);
}

function addEntry(usage: readonly CallerUsage[], added: CallerUsage): readonly CallerUsage[] {
  const at = usage.findIndex((each) => each.caller === added.caller && each.model_name === added.model_name);
  if (at >= 0) return usage.map((each, index) => (index === at ? sumOf(each, added) : each));
  if (usage.length < RUN_USAGE_ENTRIES_MAX || added.caller === FURTHER_CALLERS) return [...usage, added];
  return addEntry(usage, { ...added, caller: FURTHER_CALLERS, model_name: null });
}

function sumOf(left: CallerUsage, right: CallerUsage): CallerUsage {
  const reported = addCounts(left.reported, right.reported);
  const estimated = addCounts(left.estimated, right.estimated);
  return {
    caller: left.caller,
    model_name: left.model_name,
    ...(reported === undefined ? {} : { reported }),
    ...(estimated === undefined ? {} : { estimated }),
  };
}

function addCounts(left: TokenCounts | undefined, right: TokenCounts | undefined): TokenCounts | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  const cached = (left.cache_read_tokens ?? 0) + (right.cache_read_tokens ?? 0);
  return {
    answers: left.answers + right.answers,
    input_tokens: left.input_tokens + right.input_tokens,
    output_tokens: left.output_tokens + right.output_tokens,
    total_tokens: left.total_tokens + right.total_tokens,
    ...(cached > 0 ? { cache_read_tokens: cached } : {}),
  };
}
