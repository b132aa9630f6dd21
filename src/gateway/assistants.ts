/** The default assistants: one per graph, with a stable id. A graph id is accepted wherever an assistant id is. */
import { type Result, ok } from "../domain/shared/result.ts";
import type { Assistant, SearchAssistantsBody } from "../protocol/assistants.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import { refuse } from "./errors.ts";
import type { GatewayDeps } from "./ports.ts";

/** Default assistants exist as long as their graph does; nobody created them. */
const ALWAYS = "1970-01-01T00:00:00.000Z";

type Graphs = Pick<GatewayDeps, "graphs" | "assistantId">;

function allAssistants({ graphs, assistantId }: Graphs): Assistant[] {
  return graphs.graphs().map((graph) => ({
    assistant_id: assistantId(graph.graph_id),
    graph_id: graph.graph_id,
    name: graph.name,
    description: graph.description,
    config: {},
    context: {},
    metadata: { created_by: "system" },
    version: 1,
    created_at: ALWAYS,
    updated_at: ALWAYS,
  }));
}

export function findAssistant(graphs: Graphs, id: string): Result<Assistant, ApiRefusal> {
  const found = allAssistants(graphs).find((one) => one.graph_id === id || one.assistant_id === id);
  return found === undefined ? refuse("not_found", "Assistant not found") : ok(found);
}

/** The whole match, sorted; the caller cuts the page. */
export function searchAssistants(graphs: Graphs, query: SearchAssistantsBody): Assistant[] {
  const name = query.name?.toLowerCase();
  const matches = allAssistants(graphs).filter(
    (one) =>
      (query.graph_id ?? one.graph_id) === one.graph_id &&
      (name === undefined || one.name.toLowerCase().includes(name)) &&
      Object.entries(query.metadata ?? {}).every(([key, value]) => one.metadata[key] === value),
  );
  const sortBy = query.sort_by ?? "created_at";
  const sign = query.sort_order === "asc" ? 1 : -1;
  return matches.sort((left, right) => sign * compare(left[sortBy], right[sortBy]) || compare(left.name, right.name));
}

function compare(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
