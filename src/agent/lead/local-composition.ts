/**
 * What a lead agent runs on when nobody composed anything for it: this process, in memory. For graph loaders, which call
 * `makeLeadAgent(config)`, and for whoever gives only some of the options.
 * Owns the process-wide parts (models, providers of children) and what a thread keeps between its runs (workspace,
 * admission, journal). Nothing survives the process; a durable deployment passes every option instead.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { parseDeputyConfig, type DeputyConfig } from "../../config.ts";
import { CircuitBreakers } from "../models/circuit-breakers.ts";
import { environmentModels } from "../models/environment-models.ts";
import { reportFault } from "../report-fault.ts";
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
    models: environmentModels(deputy, newId),
    tools: workspaceTools(),
    subagents: inProcessSubagents({ newId, reportFault }),
    circuits: new CircuitBreakers(deputy.llm_call.circuit, Date.now),
    random: Math.random,
    threads: new LocalThreads(deputy, newId),
  };
}
