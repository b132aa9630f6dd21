/**
 * The graph that lead agents and interactive or batch children are all built from: two nodes, hooks inside them.
 * Owns nodes, edges and compilation. Does not own prompts, chains or which tools an agent has.
 * A caller that passes its own config into `invoke` or `stream` sets `recursionLimit: recursionLimitFor(maxTurns)`:
 * a parent's config carries the parent's limit, which wins over the one bound here.
 */
import { Annotation, END, START, Send, StateGraph } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { invariant } from "../../domain/shared/assert.ts";
import { threadStateChannels } from "../thread-state/channels.ts";
import type { ThreadState } from "../thread-state/thread-state.ts";
import { type ModelNodeOptions, modelNode } from "./model-node.ts";
import { pendingCalls } from "./pending-calls.ts";
import { type ToolTask, toolsNode } from "./tools-node.ts";
import { recursionLimitFor } from "./turn-budget.ts";

export interface AgentGraphOptions extends ModelNodeOptions {
  /** Absent: the parent task's saver is inherited, which is how an interactive child resumes. `false`: none. */
  readonly checkpointer?: BaseCheckpointSaver | false;
}

/** The calls of the answer just written, each its own task that carries only the call. */
function route(state: ThreadState): Send[] | typeof END {
  const calls = pendingCalls(state.messages);
  if (calls.length === 0) return END;
  return calls.map((call) => new Send("tools", { call } satisfies ToolTask));
}

export function buildAgentGraph(options: AgentGraphOptions) {
  const { name, services, hooks, checkpointer } = options;
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]));
  invariant(tools.size === options.tools.length, `'${name}' has two tools of one name`);
  const compiled = new StateGraph(Annotation.Root(threadStateChannels()))
    .addNode("model", modelNode(options))
    .addNode("tools", toolsNode({ name, hooks, tools, services }))
    .addEdge(START, "model")
    .addConditionalEdges("model", route, ["tools", END])
    .addEdge("tools", "model")
    .compile(checkpointer === undefined ? { name } : { name, checkpointer });
  compiled.config = { ...compiled.config, recursionLimit: recursionLimitFor(options.maxTurns) };
  return compiled;
}

export type AgentGraph = ReturnType<typeof buildAgentGraph>;

export { recursionLimitFor } from "./turn-budget.ts";
