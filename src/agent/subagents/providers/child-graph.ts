/**
 * The graph of a child in this process, and the config it runs under (architecture sections 4 and 8).
 * Owns what of the parent's a child gets. Invariants: no checkpoint coordinates are set, so an interactive child inherits
 * its task's saver and namespace (R129, R130), and its tokens are its own namespace's; a child's depth is its parent's plus one, whoever asks.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { buildAgentGraph, recursionLimitFor, type AgentGraph } from "../../graph/agent-graph.ts";
import type { AgentHook } from "../../hooks/hook.ts";
import { filterTools } from "../child-tools.ts";
import { inheritedCallbacks } from "../inherited-callbacks.ts";
import type { SubagentRequest } from "../provider.ts";
import { STRUCTURED_OUTPUT_NOTE, STRUCTURED_OUTPUT_TOOL_NAME, type StructuredOutput } from "../structured-output.ts";

export const CHILD_DEPTH_KEY = "deputy_depth";
export const CHILD_TASK_KEY = "deputy_task_id";
/** In the metadata that callbacks and traces of the child get. */
const CHILD_LABEL_KEY = "subagent_label";

/**
 * LangGraph's private key for the abort signals of the graph around: while it is set, a nested graph obeys them instead
 * of the signal it is given, and a cancelled or timed-out child would run on. `stopping.test.ts` pins it.
 */
const INHERITED_SIGNALS_KEY = "__pregel_abort_signals";

/** Throws `TypeError` when the child has a tool of the name that its answer is reported by. */
export function childGraph(
  request: SubagentRequest,
  hooks: readonly AgentHook[],
  output: StructuredOutput | undefined,
): AgentGraph {
  const { agent, parent, toolFilter, persona } = request;
  const tools = toolFilter === undefined ? agent.tools : filterTools(agent.tools, toolFilter);
  if (output !== undefined && tools.some(({ name }) => name === STRUCTURED_OUTPUT_TOOL_NAME)) {
    throw new TypeError(`'${agent.name}' has a tool '${STRUCTURED_OUTPUT_TOOL_NAME}' of its own: deny or rename it`);
  }
  const prompt = persona ?? agent.systemPrompt;
  return buildAgentGraph({
    name: agent.name,
    model: agent.model,
    // Not in the child's state: a stored system message is never taken for the framework's word (P6).
    systemPrompt: output === undefined ? prompt : [prompt, STRUCTURED_OUTPUT_NOTE].filter(Boolean).join("\n\n"),
    tools: output === undefined ? tools : [...tools, output.tool],
    hooks,
    maxTurns: agent.maxTurns,
    services: parent.services,
    // Under the child's namespace: a reader of the parent's stream gets them by asking for subgraphs. Nobody reads an item's.
    streamTokens: parent.checkpointer !== false,
    ...(parent.checkpointer === undefined ? {} : { checkpointer: parent.checkpointer }),
  });
}

/** The parent's config with its identity and handlers; only what must be the child's own is replaced. */
export function childConfig({ id, agent, parent, label }: SubagentRequest, signal: AbortSignal): RunnableConfig {
  const { runId: _runId, runName: _runName, callbacks, ...inherited } = parent.config;
  const handlers = inheritedCallbacks(callbacks);
  return {
    ...inherited,
    ...(handlers === undefined ? {} : { callbacks: handlers }),
    tags: [...(inherited.tags ?? []), `subagent:${agent.name}`],
    ...(label === undefined ? {} : { metadata: { ...inherited.metadata, [CHILD_LABEL_KEY]: label } }),
    configurable: {
      ...inherited.configurable,
      [CHILD_DEPTH_KEY]: parent.depth + 1,
      [CHILD_TASK_KEY]: id,
      [INHERITED_SIGNALS_KEY]: undefined,
    },
    recursionLimit: recursionLimitFor(agent.maxTurns),
    signal,
  };
}
