/**
 * Which limit held a run back, read from the mark on its answer (delegation-behaviour 3.6). A mark of an earlier run is
 * known by its message's id, so a run never inherits a reason.
 */
import { isAIMessage } from "@langchain/core/messages";
import type { BuiltGraph } from "../agent/graph-catalog.ts";
import type { PreRunMessageIds } from "../agent/graph/pre-run-messages.ts";
import { parseRunStopReason, RUN_STOP_REASON_KEY, type RunStopReason } from "../domain/run/stop-reason.ts";
import type { RunNotes, RunRecord } from "../platform/durable-storage/run-store.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import { findOwnMessage, preRunMessageIdsOf } from "./pre-run-messages.ts";

/** `values` is the state at the run's end. The last mark counts. */
export async function findStopReason(values: unknown, before: PreRunMessageIds): Promise<RunStopReason | undefined> {
  const marked = await findOwnMessage(
    values,
    before,
    (message) => isAIMessage(message) && message.additional_kwargs[RUN_STOP_REASON_KEY] !== undefined,
  );
  return marked && parseRunStopReason(marked.additional_kwargs[RUN_STOP_REASON_KEY]);
}

export interface EndedState {
  readonly before: PreRunMessageIds;
  /** Loaded when absent. */
  readonly values?: unknown;
}

/** The run's notes at its end. `built` reads the thread's state. */
export async function withStopReason(
  run: RunRecord,
  built: BuiltGraph,
  { before, values }: EndedState = { before: preRunMessageIdsOf(run, built) },
): Promise<{ notes?: RunNotes }> {
  if (run.graphId !== LEAD_GRAPH_ID) return {};
  const { graph, configurable } = built;
  const reason = await findStopReason(values ?? (await graph.getState({ configurable })).values, before);
  return reason === undefined ? {} : { notes: { v: 1, ...run.notes, stop_reason: reason } };
}
