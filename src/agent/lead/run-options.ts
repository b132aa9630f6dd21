/**
 * What a run may set for the lead through `configurable`, with ranges. A number out of range is clamped; which values
 * took effect is in the descriptor. Unknown names are left alone.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { DeputyConfig } from "../../config.ts";
import type { DelegationLimits } from "../../domain/delegation/delegation-limit.ts";

export const CONCURRENT_SUBAGENTS_MAX = 64;
export const TOTAL_SUBAGENTS_MAX = 50;

export interface LeadRunOptions {
  readonly modelName: string | undefined;
  readonly subagentEnabled: boolean;
  readonly limits: DelegationLimits;
  readonly maxTurns: number;
}

export function resolveRunOptions(config: RunnableConfig, deputy: DeputyConfig): LeadRunOptions {
  const options = config.configurable ?? {};
  const { max_running: maxRunning } = deputy.subagent_runtime;
  const concurrent = toCount(options["max_concurrent_subagents"], maxRunning, CONCURRENT_SUBAGENTS_MAX);
  const modelName: unknown = options["model_name"];
  return {
    modelName: typeof modelName === "string" && modelName !== "" ? modelName : undefined,
    subagentEnabled: options["subagent_enabled"] !== false,
    limits: {
      // Admission runs no more than this at once, so no answer is told it may start more.
      maxConcurrent: Math.min(concurrent, maxRunning),
      maxTotal: toCount(options["max_total_subagents"], deputy.subagents.max_total_per_run, TOTAL_SUBAGENTS_MAX),
    },
    maxTurns: turnBudget(deputy.runtime.lead_max_turns, config.recursionLimit),
  };
}

/** A client's `recursion_limit` counts LangGraph steps, two a turn (contracts, "Run options"). */
function turnBudget(own: number, recursionLimit: number | undefined): number {
  return recursionLimit === undefined ? own : Math.max(1, Math.min(own, Math.floor(recursionLimit / 2)));
}

function toCount(value: unknown, fallback: number, max: number): number {
  if (typeof value !== "number" || !Number.isFinite(value)) return fallback;
  return Math.min(max, Math.max(1, Math.trunc(value)));
}
