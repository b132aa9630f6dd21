/**
 * A graph to look at, as LangGraph's API shows it: its schemas, its drawing, the graphs it is made of. Owns no run: nothing
 * here has a thread, a saver or a tool.
 */
import type { RunnableGraph } from "../graph-catalog.ts";
import { type GraphSchemasOf, graphSchemas } from "./graph-schemas.ts";

/** LangGraph's drawing: nodes and edges. */
export interface DrawnGraph {
  readonly nodes: Record<string, unknown>[];
  readonly edges: Record<string, unknown>[];
}

export interface DescribedGraph {
  schemas(): GraphSchemasOf;
  /** `xray`: how many levels of nested graphs are drawn in their place; true for all of them. */
  draw(xray: boolean | number): Promise<DrawnGraph>;
  /** By namespace: one of them, or all; with those inside of them when `recurse`. */
  subgraphs(which: { namespace: string | undefined; recurse: boolean }): Promise<Record<string, GraphSchemasOf>>;
}

interface DrawableGraph {
  getGraphAsync(options: { xray: boolean | number }): Promise<{ toJSON(): DrawnGraph }>;
}

export function describeGraph(
  graph: RunnableGraph,
  graphId: string,
  schemasOf: (graph: object, graphId: string) => GraphSchemasOf = graphSchemas,
): DescribedGraph {
  return {
    schemas: () => schemasOf(graph, graphId),
    async draw(xray) {
      const drawn = await (graph as unknown as DrawableGraph).getGraphAsync({ xray });
      return drawn.toJSON();
    },
    async subgraphs({ namespace, recurse }) {
      const found: Record<string, GraphSchemasOf> = {};
      for await (const [name, subgraph] of graph.getSubgraphsAsync?.(namespace, recurse) ?? []) {
        found[name] = graphSchemas(subgraph as object, graphId);
      }
      return found;
    },
  };
}
