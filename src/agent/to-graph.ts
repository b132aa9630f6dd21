/**
 * Takes the graph out of whatever a caller, an operator or a graph loader hands over: a bare graph, or an agent that
 * holds one as `.graph` (R165). Owns the check that it is one.
 */
import { boundText } from "../domain/delegation/bounded-text.ts";
import type { RunnableGraph } from "./graph-catalog.ts";

const REFUSED_GRAPH_CHARS_MAX = 80;

type Held<Graph> = Graph | { readonly graph: Graph };

/** The inner graph wins: an agent may offer methods of a graph itself. Throws on anything else. */
export function toGraph<Graph extends object = RunnableGraph>(agentOrGraph: Held<Graph>): Graph {
  const inner: unknown = (agentOrGraph as { graph?: unknown } | null | undefined)?.graph;
  if (isGraph(inner)) return inner as Graph;
  if (isGraph(agentOrGraph)) return agentOrGraph as Graph;
  const shown = boundText(describe(agentOrGraph), REFUSED_GRAPH_CHARS_MAX);
  throw new TypeError(`not a graph: ${shown}; give a compiled LangGraph graph, or an object that holds one as 'graph'`);
}

function isGraph(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { stream, getState } = value as Record<string, unknown>;
  return typeof stream === "function" && typeof getState === "function";
}

function describe(value: unknown): string {
  if (typeof value === "function") return `the function '${value.name}'`;
  if (typeof value !== "object" || value === null) return String(value);
  return `an object with ${Object.keys(value).join(", ") || "no properties"}`;
}
