/**
 * Puts the lead agent of one run together: model, prompt, tools, hooks, graph. Called once per run.
 * Owns composition only. Invariant: the prompt is rendered and the chain composed exactly once; descriptor and graph
 * share those objects, so the descriptor tells the truth about the graph.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import type { DeputyConfig } from "../../config.ts";
import type { ManagedSubagent } from "../../domain/delegation/managed-subagent.ts";
import { renderManagedSubagents } from "../../domain/delegation/managed-rendering.ts";
import { invariant } from "../../domain/shared/assert.ts";
import { buildAgentGraph, type AgentGraph } from "../graph/agent-graph.ts";
import type { AgentServices } from "../graph/agent-services.ts";
import { type ChainParts, childHooks, leadHooks, type LeadDelegation } from "../hooks/chains.ts";
import type { CircuitBreakers } from "../models/circuit-breakers.ts";
import type { ChatModel, ModelCatalog } from "../models/model.ts";
import type { AdmissionController } from "../subagents/admission-controller.ts";
import { filterTools } from "../subagents/child-tools.ts";
import type { DelegationJournal } from "../subagents/delegation-journal.ts";
import { SubagentExecutor } from "../subagents/executor.ts";
import { SubagentRegistry } from "../subagents/registry.ts";
import { sha256 } from "../sha256.ts";
import type { SubagentService } from "../subagents/subagent-service.ts";
import { systemTimers, type Timers } from "../subagents/timers.ts";
import { batchTools, type BatchService } from "../tools/batch-tools.ts";
import { createTaskTool } from "../tools/task.ts";
import type { Tool } from "../tools/tool.ts";
import { renderLeadPrompt } from "./prompt.ts";
import { resolveRunOptions, type LeadRunOptions } from "./run-options.ts";

export const LEAD_AGENT_NAME = "lead";

export interface LeadAgentOptions {
  readonly deputy: DeputyConfig;
  readonly models: ModelCatalog;
  /** Tools that work by themselves: the workspace's and the operator's. */
  readonly tools: readonly Tool[];
  readonly services: AgentServices;
  /** Where children are started; its providers are registered. */
  readonly subagents: SubagentService;
  readonly admission: AdmissionController;
  readonly journal: DelegationJournal;
  /** One for all agents that share a provider's fate: the thread object's. */
  readonly circuits: CircuitBreakers;
  readonly batches?: BatchService;
  readonly checkpointer?: BaseCheckpointSaver | false;
  readonly random: () => number;
  readonly timers?: Timers;
  /** The names a run's caller may delegate to; null means all. */
  readonly allowedSubagents?: readonly string[] | null;
  /** The enabled managed subagents, as the run was accepted with them. */
  readonly managedSubagents?: readonly ManagedSubagent[];
}

export interface LeadAgentDescriptor {
  readonly model: string;
  readonly promptSha256: string;
  readonly tools: readonly string[];
  readonly hooks: readonly string[];
  readonly subagents: readonly string[];
  readonly limits: LeadRunOptions["limits"];
  readonly maxTurns: number;
}

export interface LeadAgent {
  readonly graph: AgentGraph;
  readonly descriptor: LeadAgentDescriptor;
}

/** `config` is the run's: its `configurable` chooses within what the configuration allows. */
export function assembleLeadAgent(config: RunnableConfig, options: LeadAgentOptions): LeadAgent {
  const { deputy, models, services } = options;
  const run = resolveRunOptions(config, deputy);
  const model = models.find(run.modelName) ?? models.find();
  invariant(model !== undefined, "the model catalogue is empty");
  const registry = new SubagentRegistry(deputy.subagents, options.allowedSubagents ?? null, options.managedSubagents);
  const delegates = run.subagentEnabled && registry.names().length > 0;
  const tools = leadTools(options, { config, model, registry, delegates, isParallel: run.limits.maxConcurrent > 1 });
  const hooks = leadHooks(chainParts(options), delegates ? toLeadDelegation(run.limits, registry) : undefined);
  const systemPrompt = renderLeadPrompt({
    instructions: deputy.agents.lead_instructions,
    ...(delegates ? { delegation: { limits: run.limits, subagents: registry.operatorList() } } : {}),
    hasBatches: tools.some((tool) => tool.name === "batch_task"),
  });
  const { maxTurns } = run;
  const graph = buildAgentGraph({
    name: LEAD_AGENT_NAME,
    model,
    systemPrompt,
    tools,
    hooks,
    maxTurns,
    services,
    streamTokens: true,
    ...(options.checkpointer === undefined ? {} : { checkpointer: options.checkpointer }),
  });
  return {
    graph,
    descriptor: {
      model: model.name,
      promptSha256: sha256(systemPrompt),
      tools: tools.map((tool) => tool.name),
      hooks: hooks.map((hook) => hook.name),
      subagents: delegates ? registry.names() : [],
      limits: run.limits,
      maxTurns,
    },
  };
}

export function makeLeadAgent(config: RunnableConfig, options: LeadAgentOptions): AgentGraph {
  return assembleLeadAgent(config, options).graph;
}

/** Managed subagents are shown to the model as data in its requests, never in the prompt or in a tool (R173). */
function toLeadDelegation(limits: LeadRunOptions["limits"], registry: SubagentRegistry): LeadDelegation {
  return { limits, catalogue: renderManagedSubagents(registry.managedList()) };
}

function chainParts({ services, random, circuits, deputy }: LeadAgentOptions): ChainParts {
  return { services, random, circuits, llmCall: deputy.llm_call };
}

interface LeadParts {
  readonly config: RunnableConfig;
  readonly model: ChatModel;
  readonly registry: SubagentRegistry;
  readonly delegates: boolean;
  readonly isParallel: boolean;
}

/** The operator's allow and deny lists bind the lead, and its children through it. */
function leadTools(options: LeadAgentOptions, parts: LeadParts): readonly Tool[] {
  const { allow, deny } = options.deputy.tools;
  const permitted = (tools: readonly Tool[]) => filterTools(tools, { ...(allow === null ? {} : { allow }), deny });
  const own = permitted([...options.tools, ...leadBatchTools(options, parts.config)]);
  return parts.delegates ? [...own, ...permitted([leadTaskTool(options, parts, own)])] : own;
}

function leadTaskTool(options: LeadAgentOptions, parts: LeadParts, tools: readonly Tool[]): Tool {
  const { models, services, subagents, admission, journal, timers = systemTimers } = options;
  return createTaskTool({
    executor: new SubagentExecutor({ service: subagents, admission, journal, timers }),
    registry: parts.registry,
    models,
    services,
    childHooks: childHooks(chainParts(options)),
    agentName: LEAD_AGENT_NAME,
    model: parts.model,
    tools,
    isParallel: parts.isParallel,
  });
}

function leadBatchTools({ batches, deputy }: LeadAgentOptions, config: RunnableConfig): readonly Tool[] {
  if (batches === undefined || !deputy.subagent_batches.enabled) return [];
  const threadId: unknown = config.configurable?.["thread_id"];
  return batchTools({ batches, threadId: typeof threadId === "string" ? threadId : "" });
}
