/**
 * The frozen entry of graph loaders: a run's config in, the bare graph out. `langgraph.json` names it.
 * Invariant: one parameter. LangGraph's server passes a second value of its own, which is no option of ours.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { AgentGraph } from "../graph/agent-graph.ts";
import { assembleLeadAgent } from "./assemble-lead-agent.ts";

export function makeLeadAgent(config: RunnableConfig): AgentGraph {
  return assembleLeadAgent(config).graph;
}
