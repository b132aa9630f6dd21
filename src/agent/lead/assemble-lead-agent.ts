/**
 * Puts the lead agent of one run together: model, prompt, tools, hooks, graph. Called once per run.
 * Owns composition only. Invariant: the prompt is rendered and the chain composed exactly once; descriptor and graph
 * share those objects, so the descriptor tells the truth about the graph.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { renderManagedSubagents } from "../../domain/delegation/managed-rendering.ts";
import { invariant } from "../../domain/shared/assert.ts";
import { buildAgentGraph } from "../graph/agent-graph.ts";
import { type ChainParts, childHooks, leadHooks, type LeadDelegation } from "../hooks/chains.ts";
import { sha256 } from "../sha256.ts";
import { SubagentRegistry } from "../subagents/registry.ts";
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
  return assemble(config, withLocalParts(config, options));
}

function assemble(config: RunnableConfig, options: LeadAgentOptions): LeadAgent {
  const { deputy, models, services, allowedSubagents = null } = options;
  const run = resolveRunOptions(config, deputy);
  const model = models.find(run.modelName) ?? models.find();
  invariant(model !== undefined, "the model catalogue is empty");
  const registry = new SubagentRegistry(deputy.subagents, allowedSubagents, options.managedSubagents);
  const delegates = run.subagentEnabled && registry.names().length > 0;
  const chain = chainParts(options);
  const { limits } = run;
  const tools = leadTools(options, { config, model, registry, delegates, limits, childHooks: childHooks(chain) });
  const hooks = leadHooks(chain, delegates ? toLeadDelegation(limits, registry) : undefined);
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
      parts: { systemPrompt, tools, hooks, allowedSubagents },
    },
  };
}

/** Managed subagents are shown to the model as data in its requests, never in the prompt or in a tool (R173). */
function toLeadDelegation(limits: LeadRunOptions["limits"], registry: SubagentRegistry): LeadDelegation {
  return { limits, catalogue: renderManagedSubagents(registry.managedList()) };
}

function chainParts({ services, random, circuits, deputy }: LeadAgentOptions): ChainParts {
  return { services, random, circuits, llmCall: deputy.llm_call };
}
