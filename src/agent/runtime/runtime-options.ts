/**
 * What a caller may say about a runtime, checked once. Owns the rules between the fields and their error texts; ranges
 * are those of the configuration. The result is one frozen snapshot: later changes of the caller's objects do nothing.
 */
import { ConfigError, parseDeputyConfig, type DeputyConfig, type DeputyConfigInput } from "../../config.ts";
import type { BatchRepository } from "../../domain/batch/batch-repository.ts";
import type { ModelCatalog } from "../models/model.ts";
import type { SubagentProvider } from "../subagents/provider.ts";
import type { BatchService } from "../tools/batch-tools.ts";
import type { Tool } from "../tools/tool.ts";

export interface SubagentRuntimeOptions {
  /** The section `subagent_runtime` of the configuration: slots and the queue before them. */
  readonly config?: NonNullable<DeputyConfigInput["subagent_runtime"]>;
  /** `task` calls of one run: 1 to 50. */
  readonly maxTotalPerRun?: number;
  /** The section `subagents`: built-ins' limits, overrides, custom agents. */
  readonly subagents?: NonNullable<DeputyConfigInput["subagents"]>;
  /** Models that definitions name, and the default of batch items. Absent: those the process environment has keys for. */
  readonly models?: ModelCatalog;
  /** Beside `spawn` and `fork`. */
  readonly providers?: readonly SubagentProvider[];
  /** Batches of somebody else, by thread. */
  readonly batchSubmitter?: (threadId: string) => BatchService;
  /** Rows of batches that this runtime runs itself. Needs `batchConfig` and `models`. */
  readonly batchRepository?: BatchRepository;
  /** The section `subagent_batches`. Needs `batchRepository`. */
  readonly batchConfig?: NonNullable<DeputyConfigInput["subagent_batches"]>;
  /** What batch items may use; a graph's own tools belong to its conversation. */
  readonly batchTools?: readonly Tool[];
  /** Who the rows of the batch repository belong to. */
  readonly owner?: string;
}

export class SubagentRuntimeError extends Error {
  override readonly name = "SubagentRuntimeError";
}

/** Throws `SubagentRuntimeError` naming the field and what is allowed. */
export function readSnapshot(options: SubagentRuntimeOptions): DeputyConfig {
  const conflict = conflictIn(options);
  if (conflict !== undefined) throw new SubagentRuntimeError(conflict);
  const { config = {}, subagents = {}, batchConfig, maxTotalPerRun } = options;
  const total = maxTotalPerRun === undefined ? {} : { max_total_per_run: maxTotalPerRun };
  const snapshot = parsed({
    subagent_runtime: config,
    subagents: { ...subagents, ...total },
    subagent_batches: batchConfig ?? {},
  });
  if (options.batchRepository !== undefined && !snapshot.subagent_batches.enabled) {
    throw new SubagentRuntimeError("batchRepository needs a batchConfig whose `enabled` is true");
  }
  return deepFreeze(snapshot);
}

const OPTIONS = [
  "config",
  "maxTotalPerRun",
  "subagents",
  "models",
  "providers",
  "batchSubmitter",
  "batchRepository",
  "batchConfig",
  "batchTools",
  "owner",
] as const satisfies readonly (keyof SubagentRuntimeOptions)[];

function conflictIn(options: SubagentRuntimeOptions): string | undefined {
  const unknown = Object.keys(options).find((key) => !(OPTIONS as readonly string[]).includes(key));
  if (unknown !== undefined) return `there is no option '${unknown}'; allowed are: ${OPTIONS.join(", ")}`;
  const { batchSubmitter, batchRepository, batchConfig, models, batchTools, maxTotalPerRun, subagents } = options;
  if (maxTotalPerRun !== undefined && subagents?.max_total_per_run !== undefined) {
    return "maxTotalPerRun and subagents.max_total_per_run are one limit: give one of them";
  }
  if (batchSubmitter !== undefined && batchRepository !== undefined) {
    return "batchSubmitter and batchRepository exclude each other: give the one that takes the batches";
  }
  if (batchRepository === undefined) {
    if (batchConfig !== undefined) return "batchConfig needs a batchRepository: nothing else reads it";
    return batchTools === undefined ? undefined : "batchTools needs a batchRepository: nothing else runs items";
  }
  if (batchConfig === undefined) return "batchRepository needs a batchConfig whose `enabled` is true";
  return models === undefined
    ? "batchRepository needs models: items run without a graph to inherit one from"
    : undefined;
}

/** Where our own names differ from the configuration's, the error names ours. */
const OUR_NAMES = [
  ["subagents.max_total_per_run", "maxTotalPerRun"],
  ["subagent_runtime", "config"],
  ["subagent_batches", "batchConfig"],
] as const;

function parsed(input: DeputyConfigInput): DeputyConfig {
  try {
    return parseDeputyConfig(structuredClone(input));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const lines = error.message.split("\n").slice(1);
    const named = OUR_NAMES.reduce((text, [theirs, ours]) => text.replaceAll(theirs, ours), lines.join("\n"));
    throw new SubagentRuntimeError(`the options of SubagentRuntime are invalid:\n${named}`);
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}
