/**
 * A thread's metadata as clients see and search it: their own, and which graph and assistant its newest run is of, by which
 * chat clients find their threads. Derived like the thread's status: no row is written for it.
 */
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { ThreadRecord } from "../platform/durable-storage/thread-store.ts";

export function threadMetadata({ metadata }: ThreadRecord, newest: RunRecord | undefined): Record<string, unknown> {
  if (newest === undefined) return { ...metadata };
  return { ...metadata, graph_id: newest.graphId, assistant_id: newest.command.body.assistant_id };
}
