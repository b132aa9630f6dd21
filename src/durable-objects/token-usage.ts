/** Sums what the runs of a thread used, out of what each run's row says. Owns the sums; the runs own the counts. */
import { type CallerUsage, LEAD_CALLER } from "../domain/run/run-usage.ts";
import type { TokenUsage, TokenUsageQuery } from "../protocol/token-usage.ts";
import type { ThreadContext } from "./thread-context.ts";

/** The model of answers that name none. */
const UNNAMED_MODEL = "unknown";
const SUBAGENT_CALLER = "subagent:";

export function sumTokenUsage(
  { threadId, runs, outbox }: Pick<ThreadContext, "threadId" | "runs" | "outbox">,
  query: TokenUsageQuery,
): TokenUsage {
  const usages = runs.usages();
  for (const { runId } of query.include_active ? runs.active() : []) usages.set(runId, outbox.usageOf(runId));
  const sums = {
    thread_id: threadId,
    total_tokens: 0,
    total_input_tokens: 0,
    total_output_tokens: 0,
    estimated_tokens: 0,
    total_runs: [...usages.values()].filter((usage) => usage.length > 0).length,
    by_model: new Map<string, { tokens: number; runs: Set<string> }>(),
    by_caller: { lead_agent: 0, subagent: 0, middleware: 0 },
    by_subagent: new Map<string, number>(),
  };
  for (const [runId, usage] of usages) for (const entry of usage) add(sums, runId, entry);
  return {
    ...sums,
    by_model: Object.fromEntries(
      [...sums.by_model].map(([name, { tokens, runs: of }]) => [name, { tokens, runs: of.size }]),
    ),
    by_subagent: Object.fromEntries(sums.by_subagent),
  };
}

interface Sums extends Omit<TokenUsage, "by_model" | "by_subagent"> {
  readonly by_model: Map<string, { tokens: number; runs: Set<string> }>;
  readonly by_subagent: Map<string, number>;
}

function add(sums: Sums, runId: string, { caller, model_name: modelName, reported, estimated }: CallerUsage): void {
  const counts = [reported, estimated].filter((count) => count !== undefined);
  const total = counts.reduce((sum, count) => sum + count.total_tokens, 0);
  sums.total_tokens += total;
  sums.total_input_tokens += counts.reduce((sum, count) => sum + count.input_tokens, 0);
  sums.total_output_tokens += counts.reduce((sum, count) => sum + count.output_tokens, 0);
  sums.estimated_tokens += estimated?.total_tokens ?? 0;
  const model = modelName ?? UNNAMED_MODEL;
  const ofModel = sums.by_model.get(model) ?? { tokens: 0, runs: new Set() };
  ofModel.tokens += total;
  ofModel.runs.add(runId);
  sums.by_model.set(model, ofModel);
  if (caller === LEAD_CALLER) sums.by_caller.lead_agent += total;
  else if (caller.startsWith(SUBAGENT_CALLER)) {
    const name = caller.slice(SUBAGENT_CALLER.length);
    sums.by_caller.subagent += total;
    sums.by_subagent.set(name, (sums.by_subagent.get(name) ?? 0) + total);
  } else sums.by_caller.middleware += total;
}
