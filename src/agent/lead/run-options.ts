/**
 * What a run may set for the lead through `configurable` and `context`, and what it gets.
 * Owns ranges, defaults and the list of what was adjusted: a value that is not taken as it was asked is never taken in
 * silence. Unknown names are left alone. `context` wins over `configurable`, as for every other key of a run.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { DeputyConfig } from "../../config.ts";
import type { DelegationLimits } from "../../domain/delegation/delegation-limit.ts";
import type { AdjustedOptions } from "../../domain/run/adjusted-options.ts";
import type { ModelCatalog } from "../models/model.ts";

export const CONCURRENT_SUBAGENTS_MAX = 64;
export const TOTAL_SUBAGENTS_MAX = 50;

export interface LeadRunOptions {
  /** `undefined`: the default model. Always one the catalogue has. */
  readonly modelName: string | undefined;
  /** Where the model can think at all; a request to one that cannot is told in `adjusted`. */
  readonly thinkingEnabled: boolean;
  readonly subagentEnabled: boolean;
  readonly limits: DelegationLimits;
  readonly maxTurns: number;
  /** What was asked for and is not used as asked, by name. */
  readonly adjusted: AdjustedOptions;
}

/** What the deployment gives a run to choose from, as it is now. */
export interface LeadRunBounds {
  readonly deputy: DeputyConfig;
  readonly models: Pick<ModelCatalog, "defaultName" | "find">;
  /** Of the live admission controller, which keeps it as long as it lives; the configuration may be newer (R39). */
  readonly maxRunning: number;
}

export function resolveRunOptions(config: RunnableConfig, bounds: LeadRunBounds): LeadRunOptions {
  const { deputy, models, maxRunning } = bounds;
  const asked = new AskedOptions({ ...config.configurable, ...contextOf(config) });
  const modelName = asked.choice("model_name", (name) => models.find(name) !== undefined, models.defaultName);
  return {
    modelName,
    thinkingEnabled: asked.flag("thinking_enabled", models.find(modelName)?.thinking === true),
    subagentEnabled: asked.flag("subagent_enabled"),
    limits: {
      // Admission runs no more than this at once, so no answer is told that it may start more (R38).
      maxConcurrent: asked.count(
        "max_concurrent_subagents",
        maxRunning,
        Math.min(maxRunning, CONCURRENT_SUBAGENTS_MAX),
      ),
      maxTotal: asked.count("max_total_subagents", deputy.subagents.max_total_per_run, TOTAL_SUBAGENTS_MAX),
    },
    maxTurns: turnBudget(deputy.runtime.lead_max_turns, config.recursionLimit),
    adjusted: asked.adjusted,
  };
}

/** Where LangGraph itself is the caller, context is not part of `configurable`. */
function contextOf(config: RunnableConfig): Readonly<Record<string, unknown>> {
  const { context } = config as { readonly context?: unknown };
  return context !== null && typeof context === "object" ? (context as Record<string, unknown>) : {};
}

/** A client's `recursion_limit` counts LangGraph steps, two a turn (contracts, "Run options"). */
function turnBudget(own: number, recursionLimit: number | undefined): number {
  return recursionLimit === undefined ? own : Math.max(1, Math.min(own, Math.floor(recursionLimit / 2)));
}

/** Reads options one by one and notes each that is not used as asked. One that is null counts as not set. */
class AskedOptions {
  readonly adjusted: Record<string, { requested: unknown; used: unknown }> = {};
  readonly #values: Readonly<Record<string, unknown>>;

  constructor(values: Readonly<Record<string, unknown>>) {
    this.#values = values;
  }

  /** On unless it was switched off. What is not possible may not be asked for. */
  flag(name: string, isPossible = true): boolean {
    const requested = this.#values[name] ?? undefined;
    if (!isPossible && requested !== undefined && requested !== false) return this.#adjust(name, requested, false);
    if (requested === undefined || typeof requested === "boolean") return requested ?? true;
    return this.#adjust(name, requested, true);
  }

  count(name: string, fallback: number, max: number): number {
    const requested = this.#values[name] ?? undefined;
    if (requested === undefined) return Math.min(fallback, max);
    if (typeof requested !== "number" || Number.isNaN(requested))
      return this.#adjust(name, requested, Math.min(fallback, max));
    const used = Math.min(max, Math.max(1, Math.trunc(requested)));
    return used === requested ? used : this.#adjust(name, requested, used);
  }

  choice(name: string, isKnown: (value: string) => boolean, fallback: string): string | undefined {
    const requested = this.#values[name] ?? undefined;
    if (requested === undefined) return undefined;
    if (typeof requested === "string" && isKnown(requested)) return requested;
    this.#adjust(name, requested, fallback);
    return undefined;
  }

  #adjust<T>(name: string, requested: unknown, used: T): T {
    this.adjusted[name] = { requested, used };
    return used;
  }
}
