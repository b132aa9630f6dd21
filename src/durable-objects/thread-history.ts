/**
 * A thread that is made with a history (`supersteps`): each superstep is a checkpoint, as if its nodes had written it.
 * Owns that the thread is there with all of it or not at all: the checkpoints come first, the thread's row last, and what a
 * refused or broken create leaves goes like an abandoned copy's (`thread-copies.ts`). No run is made, nothing is logged.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { ThreadState } from "../agent/thread-state/thread-state.ts";
import { err, ok } from "../domain/shared/result.ts";
import type { RpcResult } from "../protocol/errors.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { CreateThreadBody, SuperstepBody } from "../protocol/threads.ts";
import { refusedUpdate, type StateService } from "./state-service.ts";
import type { ThreadContext } from "./thread-context.ts";

/** Call as an edit of the state, on a thread that has no row yet. */
export async function writeHistory(
  context: ThreadContext,
  state: StateService,
  { metadata, supersteps = [] }: CreateThreadBody,
): Promise<RpcResult<null>> {
  const graphId = metadata["graph_id"] ?? LEAD_GRAPH_ID;
  if (typeof graphId !== "string" || !context.deps.catalog.has(graphId)) {
    const path = ["metadata", "graph_id"];
    return err({
      code: "invalid_request",
      message: `metadata.graph_id: no graph ${JSON.stringify(graphId)}`,
      details: { path },
    });
  }
  const { graph, configurable } = await context.graphs.forHistory(graphId);
  const config: RunnableConfig = { configurable: { ...configurable } };
  for (const [index, { updates }] of supersteps.entries()) {
    const before = (await graph.getState(config)).values as Partial<ThreadState>;
    const written: { values: unknown; asNode: string }[] = [];
    for (const { values, as_node: asNode } of updates) {
      const prepared = await state.prepareValues(before, values, graphId);
      if (!prepared.ok) return at(index, prepared.error);
      written.push({ values: prepared.value, asNode });
    }
    try {
      if (graph.bulkUpdateState === undefined) return at(index, noSteps(graphId));
      await graph.bulkUpdateState(config, [{ updates: written }]);
    } catch (fault) {
      const refused = refusedUpdate(fault);
      if (refused === undefined || refused.ok) throw fault;
      return at(index, refused.error);
    }
  }
  return ok(null);
}

type Refusal = Extract<RpcResult<never>, { ok: false }>["error"];

function at(index: number, { code, message, details }: Refusal): RpcResult<never> {
  return err({ code, message: `supersteps.${index}: ${message}`, details: { ...details, index } });
}

function noSteps(graphId: string): Refusal {
  return { code: "invalid_request", message: `graph '${graphId}' takes no steps from outside` };
}

export function hasHistory({ supersteps }: { readonly supersteps?: readonly SuperstepBody[] | undefined }): boolean {
  return supersteps !== undefined && supersteps.length > 0;
}
