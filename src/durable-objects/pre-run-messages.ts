/**
 * The messages a run met: those of the checkpoint it started from. What carries one of their ids is older than the run,
 * whatever it says (D 5.3, R46).
 */
import type { BaseMessage } from "@langchain/core/messages";
import type { BuiltGraph } from "../agent/graph-catalog.ts";
import type { PreRunMessageIds } from "../agent/graph/pre-run-messages.ts";
import { forkOf } from "./run-start.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";

/** Loaded when first asked for, and once. */
export function preRunMessageIdsOf(run: RunRecord, built: BuiltGraph): PreRunMessageIds {
  let ids: Promise<ReadonlySet<string>> | undefined;
  return () => (ids ??= loadIds(forkOf(run) ?? run.baseCheckpointId, built));
}

async function loadIds(checkpointId: string | null, { graph, configurable }: BuiltGraph): Promise<ReadonlySet<string>> {
  if (checkpointId === null) return new Set();
  const { values } = await graph.getState({ configurable: { ...configurable, checkpoint_id: checkpointId } });
  return new Set(messagesIn(values).flatMap(({ id }) => id ?? []));
}

/** The newest message of the run itself that has the mark, known by an id that did not stand before the run. */
export async function findOwnMessage(
  values: unknown,
  before: PreRunMessageIds,
  isMarked: (message: BaseMessage) => boolean,
): Promise<BaseMessage | undefined> {
  const marked = messagesIn(values).filter(isMarked);
  // Asked only with a mark in sight: it may load a state.
  if (marked.length === 0) return undefined;
  const ids = await before();
  return marked.findLast(({ id }) => id === undefined || !ids.has(id));
}

/** An operator's own graph may have no messages, or something else of that name. */
function messagesIn(values: unknown): readonly BaseMessage[] {
  const messages: unknown = (values as { readonly messages?: unknown } | null | undefined)?.messages;
  return Array.isArray(messages) ? messages.filter((each) => isMessage(each)) : [];
}

function isMessage(value: unknown): value is BaseMessage {
  return value !== null && typeof value === "object" && "additional_kwargs" in value && "getType" in value;
}
