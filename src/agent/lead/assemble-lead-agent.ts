/**
 * Puts the lead agent of one run together: model, prompt, tools, hooks, graph. Called once per run.
 * Owns composition only. Invariant: the prompt is rendered and the chain composed exactly once; descriptor and graph
 * share those objects, so the descriptor tells the truth about the graph.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { DeputyConfig } from "../../config.ts";
import { narrowSubagents } from "../../domain/assistant/agent-snapshot.ts";
import { renderManagedSubagents } from "../../domain/delegation/managed-rendering.ts";
import { invariant } from "../../domain/shared/assert.ts";
import { buildAgentGraph } from "../graph/agent-graph.ts";
import { prepareInputs } from "../graph/prepare-input.ts";
import { type ChainParts, childHooks, leadHooks, type LeadDelegation } from "../hooks/chains.ts";
import { sha256 } from "../sha256.ts";
import { unusableBuiltIns } from "../subagents/built-ins.ts";
import { SubagentRegistry } from "../subagents/registry.ts";
import { ToolAuthorization } from "../tools/authorization.ts";
import { configuredPolicy, UNNAMED_PRINCIPAL } from "../tools/configured-policy.ts";
import { resolveCustomAgent } from "./custom-agent.ts";
import type { LeadAgent, LeadAgentOptions } from "./lead-agent-options.ts";
import { LEAD_AGENT_NAME, leadTools } from "./lead-tools.ts";
import { withLocalParts } from "./local-composition.ts";
import { renderLeadPrompt } from "./prompt.ts";
import { resolveRunOptions, type LeadRunOptions } from "./run-options.ts";

/**
 * `config` is the run's: its `configurable` chooses within what the configuration allows. What `options` leave out is
 * composed in this process, in memory.
 */
export function assembleLeadAgent(config: RunnableConfig, options: Partial<LeadAgentOptions> = {}): LeadAgent {
  const parts = withLocalParts(config, options);
  const agent = assemble(config, parts);
  // Whoever composes everything also prepares the input of its runs.
  if (parts !== options) prepareInputs(agent.graph, { newId: () => parts.services.newId(), isForeign: true });
  return agent;
}

function assemble(config: RunnableConfig, options: LeadAgentOptions): LeadAgent {
  const { deputy, models, services } = options;
  const agent = resolveCustomAgent(config, options.agent);
  const allowedSubagents = narrowSubagents(options.allowedSubagents ?? null, agent.allowedSubagents);
  const run = resolveRunOptions(config, { deputy, models, maxRunning: options.admission.snapshot().max_running });
  const model = models.find(run.modelName) ?? models.find();
  invariant(model !== undefined, "the model catalogue is empty");
  const authorization = options.authorization ?? unnamedAuthorization(deputy);
  const mayUse = (tool: string) => (agent.tools?.includes(tool) ?? true) && authorization.permits(tool);
  const unusable = unusableBuiltIns((name) => mayUse(name) && options.tools.some((tool) => tool.name === name));
  const registry = new SubagentRegistry(deputy.subagents, allowedSubagents, options.managedSubagents, unusable);
  const delegates = run.subagentEnabled && registry.names().length > 0 && mayUse("task");
  const chain = chainParts(options, authorization);
  const { limits } = run;
  const tools = leadTools(options, {
    config,
    model,
    registry,
    mayUse,
    delegates,
    limits,
    childHooks: childHooks(chain),
  });
  const hooks = leadHooks(chain, delegates ? toLeadDelegation(limits, registry) : undefined, agent.userInstructions);
  const systemPrompt = renderLeadPrompt({
    instructions: [deputy.agents.lead_instructions, ...agent.operatorInstructions].join("\n\n"),
    ...(delegates ? { delegation: { limits: run.limits, subagents: registry.operatorList() } } : {}),
    hasBatches: tools.some((tool) => tool.name === "batch_task"),
    hasBatchStatus: tools.some((tool) => tool.name === "batch_status"),
  });
  const { maxTurns } = run;
  const thinking = run.thinkingEnabled && model.thinking === true;
  const graph = buildAgentGraph({
    name: LEAD_AGENT_NAME,
    model,
    thinking,
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
      thinking,
      promptSha256: sha256(systemPrompt),
      tools: tools.map((tool) => tool.name),
      hooks: hooks.map((hook) => hook.name),
      subagents: delegates ? registry.names() : [],
      limits: run.limits,
      maxTurns,
      parts: { systemPrompt, tools, hooks, allowedSubagents },
    },
  };
}

/** Managed subagents are shown to the model as data in its requests, never in the prompt or in a tool (R173). */
function toLeadDelegation(limits: LeadRunOptions["limits"], registry: SubagentRegistry): LeadDelegation {
  return { limits, catalogue: renderManagedSubagents(registry.managedList()) };
}

function chainParts(
  { services, random, circuits, deputy }: LeadAgentOptions,
  authorization: ToolAuthorization,
): ChainParts {
  return { services, random, circuits, llmCall: deputy.llm_call, authorization, approvals: deputy.tools.approval };
}

function unnamedAuthorization({ tools }: DeputyConfig): ToolAuthorization {
  return new ToolAuthorization({ policy: configuredPolicy(tools), principal: UNNAMED_PRINCIPAL });
}
