/**
 * Where a state stands that a client names: the root graph, or a subgraph by its namespace (`node:<task id>`, `|` between
 * levels). Owns which graph reads a namespace; LangGraph itself finds a subgraph only through a graph's own saver, and
 * here savers come with the config.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { type BuiltGraph, type RunnableGraph, SAVER_KEY } from "../agent/graph-catalog.ts";
import { toGraph } from "../agent/to-graph.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { ThreadContext } from "./thread-context.ts";

export interface StatePlace {
  readonly graph: RunnableGraph;
  readonly config: RunnableConfig;
  readonly checkpointId: string | undefined;
}

/** `undefined` when the thread's graph has nothing under that namespace. */
export async function findStatePlace(
  context: ThreadContext,
  at: { checkpoint_ns?: string | null | undefined; checkpoint_id?: string | null | undefined },
): Promise<StatePlace | undefined> {
  const built = await context.graphs.forState();
  const checkpointId = at.checkpoint_id ?? undefined;
  const byId = checkpointId === undefined ? {} : { checkpoint_id: checkpointId };
  const ns = at.checkpoint_ns ?? "";
  if (ns === "")
    return { graph: built.graph, config: { configurable: { ...built.configurable, ...byId } }, checkpointId };
  const graph = await findSubgraph(context, built, ns);
  if (graph === undefined) return undefined;
  const under = { ...built.configurable, checkpoint_ns: ns, [SAVER_KEY]: context.saver, ...byId };
  return { graph, config: { configurable: under }, checkpointId };
}

async function findSubgraph(
  context: ThreadContext,
  { graph }: BuiltGraph,
  ns: string,
): Promise<RunnableGraph | undefined> {
  const path = ns
    .split("|")
    .map((level) => level.split(":")[0])
    .join("|");
  for await (const [, subgraph] of graph.getSubgraphsAsync?.(path, true) ?? [])
    return toGraph(subgraph as RunnableGraph);
  // The lead's delegations are no nodes of its graph; their children have its channels.
  return context.graphs.stateGraphId() === LEAD_GRAPH_ID ? graph : undefined;
}
