/**
 * An agent for a program of the caller's: its own Worker or Node process, its own graph around it (delegation-behaviour
 * 1.9). Owns the composition only: it creates no SQL and mounts no route, and the system prompt is sent as it was given.
 * What the model is told about delegating stands in the `task` tool alone; further policy is the caller's to word (R195).
 */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { StructuredToolInterface } from "@langchain/core/tools";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { type DeputyConfig, parseDeputyConfig } from "../../config.ts";
import { buildAgentGraph } from "../graph/agent-graph.ts";
import type { AgentServices } from "../graph/agent-services.ts";
import { prepareInputs } from "../graph/prepare-input.ts";
import { threadIdOf } from "../graph/thread-id.ts";
import { type ChainParts, childHooks, leadHooks } from "../hooks/chains.ts";
import type { AgentHook } from "../hooks/hook.ts";
import type { ChatModel, ModelCatalog } from "../models/model.ts";
import { fromLangChainModel, isLangChainModel } from "../models/langchain-model.ts";
import { memoryJournal } from "../subagents/delegation-journal.ts";
import { SubagentExecutor } from "../subagents/executor.ts";
import { unusableBuiltIns } from "../subagents/built-ins.ts";
import { SubagentRegistry } from "../subagents/registry.ts";
import { systemTimers } from "../subagents/timers.ts";
import { ToolAuthorization } from "../tools/authorization.ts";
import { batchTools } from "../tools/batch-tools.ts";
import { configuredPolicy, UNNAMED_PRINCIPAL } from "../tools/configured-policy.ts";
import { fromLangChainTool, isLangChainTool } from "../tools/langchain-tool.ts";
import { createTaskTool } from "../tools/task.ts";
import type { Tool } from "../tools/tool.ts";
import type { WorkspaceStaging } from "../tools/workspace.ts";
import { checkAgentOptions, checkToolNames } from "./check-agent-options.ts";
import { DeputyAgent } from "./deputy-agent.ts";
import { memoryServices } from "./memory-services.ts";
import { NO_WORKSPACE } from "./no-workspace.ts";
import { type RuntimeBinding, SubagentRuntime } from "./subagent-runtime.ts";

export const DEPUTY_AGENT_TURNS = 100;

export interface DeputyAgentOptions {
  /** A chat model of LangChain's, one of ours, or a name of the runtime's catalogue. */
  readonly model: BaseChatModel | ChatModel | string;
  /** Tools of LangChain's and of ours. Ours say what may happen after a crash; LangChain's count as `once`. */
  readonly tools?: readonly (StructuredToolInterface | Tool)[];
  /** Sent byte for byte. */
  readonly systemPrompt?: string;
  /** Gives the agent `task`, and batches where the runtime has them. Absent: an agent that does not delegate. */
  readonly subagentRuntime?: SubagentRuntime;
  /** A complete chain instead of the default one. Not together with a runtime, whose limits are hooks. */
  readonly hooks?: readonly AgentHook[];
  readonly name?: string;
  readonly maxTurns?: number;
  /** The subagents it may start; null means all. */
  readonly allowedSubagents?: readonly string[] | null;
  readonly checkpointer?: BaseCheckpointSaver;
  /** Where tools of ours read and write files; shared by all threads of the agent. Absent: it has no files. */
  readonly workspace?: WorkspaceStaging;
}

/** Throws on options that exclude each other, on an unknown model name and on a runtime that is not started. */
export function createDeputyAgent(options: DeputyAgentOptions): DeputyAgent {
  checkAgentOptions(options);
  const { subagentRuntime: runtime, systemPrompt = "", name = "agent", maxTurns = DEPUTY_AGENT_TURNS } = options;
  // Without a runtime of the caller's there is still a catalogue to name models of; nothing else of it is used.
  const binding = (runtime ?? new SubagentRuntime()).bind();
  const services = { ...memoryServices(binding.newId), workspace: options.workspace ?? NO_WORKSPACE };
  const model = resolveModel(options.model, binding);
  const chain = chainParts(binding, services);
  const own = (options.tools ?? []).map(toTool);
  const bound = runtime === undefined ? [] : delegationTools({ binding, services, chain, model, own, name }, options);
  const tools = [...own, ...bound];
  checkToolNames(tools);
  const limits = limitsOf(binding);
  const delegation = bound.length === 0 ? undefined : { limits, catalogue: "" };
  const hooks = options.hooks ?? leadHooks(chain, delegation);
  const { checkpointer } = options;
  const graph = buildAgentGraph({
    name,
    model,
    systemPrompt,
    tools,
    hooks,
    maxTurns,
    services,
    streamTokens: true,
    ...(checkpointer === undefined ? {} : { checkpointer }),
  });
  prepareInputs(graph, { newId: binding.newId, isForeign: false });
  return new DeputyAgent({ graph, model: model.name, systemPrompt, tools, hooks, maxTurns, newId: binding.newId });
}

function toTool(tool: StructuredToolInterface | Tool): Tool {
  if ("execute" in tool) return tool;
  if (isLangChainTool(tool)) return fromLangChainTool(tool, "once");
  throw new TypeError("tools: each must be a LangChain tool with a schema, or one of Deputy's with `execute`");
}

function resolveModel(model: DeputyAgentOptions["model"], { models, newId }: RuntimeBinding): ChatModel {
  if (typeof model !== "string") {
    return isLangChainModel(model) ? fromLangChainModel(model, { newId, random: Math.random }) : model;
  }
  const found = models.find(model);
  if (found !== undefined) return found;
  throw new TypeError(`there is no model '${model}'; usable are: ${models.names().join(", ")}`);
}

function limitsOf({ deputy }: RuntimeBinding) {
  return { maxConcurrent: deputy.subagent_runtime.max_running, maxTotal: deputy.subagents.max_total_per_run };
}

/** Who may do what is the caller's business: its program hands out the tools. */
function chainParts({ circuits, deputy }: RuntimeBinding, services: AgentServices): ChainParts {
  const authorization = new ToolAuthorization({
    policy: configuredPolicy(parseDeputyConfig({}).tools),
    principal: UNNAMED_PRINCIPAL,
  });
  return {
    services,
    random: Math.random,
    circuits,
    llmCall: deputy.llm_call,
    authorization,
    approvals: deputy.tools.approval,
  };
}

interface DelegationParts {
  readonly binding: RuntimeBinding;
  readonly services: AgentServices;
  readonly chain: ChainParts;
  readonly model: ChatModel;
  readonly own: readonly Tool[];
  readonly name: string;
}

function delegationTools(parts: DelegationParts, { allowedSubagents = null }: DeputyAgentOptions): readonly Tool[] {
  const { binding, services, model, own } = parts;
  const { admission, subagents: service, deputy } = binding;
  checkKnown(deputy, allowedSubagents);
  const unusable = unusableBuiltIns((name) => own.some((tool) => tool.name === name));
  const registry = new SubagentRegistry(deputy.subagents, allowedSubagents, [], unusable);
  if (registry.names().length === 0) return [];
  const task = createTaskTool({
    executor: new SubagentExecutor({ service, admission, journal: memoryJournal(), timers: systemTimers }),
    registry,
    models: inheriting(binding.models, model),
    services,
    childHooks: childHooks(parts.chain),
    agentName: parts.name,
    model,
    tools: own,
    limits: limitsOf(binding),
  });
  const batches = binding.batches === undefined ? [] : threadBatchTools(binding.batches, registry);
  return [task, ...batches].map((tool) => binding.guard(tool));
}

function checkKnown({ subagents }: DeputyConfig, allowed: readonly string[] | null): void {
  const all = new SubagentRegistry(subagents).names();
  const unknown = allowed?.find((name) => !all.includes(name));
  if (unknown === undefined) return;
  throw new TypeError(`allowedSubagents: there is no subagent '${unknown}'; there are: ${all.join(", ")}`);
}

/** `inherit` is the agent's own model, which no catalogue may know. */
function inheriting(models: ModelCatalog, own: ChatModel): ModelCatalog {
  const { defaultName } = models;
  return { defaultName, names: () => models.names(), find: (name) => (name === own.name ? own : models.find(name)) };
}

/** A graph serves many threads; each call is for the thread it runs in. */
function threadBatchTools(batches: NonNullable<RuntimeBinding["batches"]>, subagents: SubagentRegistry): Tool[] {
  const of = (threadId: string) => batchTools({ batches: batches(threadId), threadId, subagents });
  return of("").map((shown, index) => ({
    ...shown,
    execute: async (args, runtime) => {
      const tool = of(threadIdOf(runtime.config) ?? "")[index];
      return tool === undefined ? shown.execute(args, runtime) : tool.execute(args, runtime);
    },
  }));
}
