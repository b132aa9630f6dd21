/**
 * What a lead agent runs on when nobody composed anything for it: this process, in memory. For graph loaders, which call
 * `makeLeadAgent(config)`, and for whoever gives only some of the options.
 * Owns the process-wide parts (models, providers of children) and what a thread keeps between its runs (workspace,
 * admission, journal). Nothing survives the process; a durable deployment passes every option instead.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { parseDeputyConfig, type DeputyConfig } from "../../config.ts";
import { createModelCatalog } from "../models/catalog.ts";
import { CircuitBreakers } from "../models/circuit-breakers.ts";
import { environmentCredentials } from "../models/environment-credentials.ts";
import { workspaceTools } from "../tools/workspace-tools.ts";
import { inProcessSubagents } from "../subagents/in-process-subagents.ts";
import { LocalThreads } from "../runtime/local-threads.ts";
import type { LeadAgentOptions } from "./lead-agent-options.ts";

/** Read when first needed: a deployment never does. */
let defaultDeputy: DeputyConfig | undefined;

/** One for each configuration object: two graphs of one configuration share models, children's slots and files. */
const processes = new WeakMap<DeputyConfig, ReturnType<typeof composeProcess>>();

/** Complete options are used as they are: then nothing is composed. */
export function withLocalParts(config: RunnableConfig, options: Partial<LeadAgentOptions>): LeadAgentOptions {
  return isComplete(options)
    ? options
    : { ...localParts(config, options.deputy ?? (defaultDeputy ??= parseDeputyConfig({}))), ...options };
}

const NEEDED = [
  "deputy",
  "models",
  "tools",
  "services",
  "subagents",
  "admission",
  "journal",
  "circuits",
  "random",
] as const satisfies readonly (keyof LeadAgentOptions)[];

function isComplete(options: Partial<LeadAgentOptions>): options is LeadAgentOptions {
  return NEEDED.every((part) => options[part] !== undefined);
}

function localParts(config: RunnableConfig, deputy: DeputyConfig): LeadAgentOptions {
  const known = processes.get(deputy) ?? composeProcess(deputy);
  processes.set(deputy, known);
  const { threads, ...shared } = known;
  return { ...shared, ...threads.of(config) };
}

function composeProcess(deputy: DeputyConfig) {
  const newId = () => crypto.randomUUID();
  return {
    deputy,
    models: createModelCatalog({
      models: deputy.models,
      credentials: environmentCredentials(),
      modelIdleMs: deputy.runtime.model_idle_seconds * 1_000,
      newId,
      random: Math.random,
      now: Date.now,
    }),
    tools: workspaceTools(),
    subagents: inProcessSubagents({ newId, reportFault }),
    circuits: new CircuitBreakers(deputy.llm_call.circuit, Date.now),
    random: Math.random,
    threads: new LocalThreads(deputy, newId),
  };
}

/** A listener of the seam that throws is a fault of whoever registered it; it must not vanish. */
function reportFault(what: string, error: unknown): void {
  // oxlint-disable-next-line no-console -- a process without a composition root has no other log
  console.error(what, error);
}
