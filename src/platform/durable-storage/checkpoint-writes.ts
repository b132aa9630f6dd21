/**
 * The writes of one task at one checkpoint, packed into one row body.
 *
 * Owns the merge of a repeated call and the order in which writes are replayed. Rules, as LangGraph's own savers have
 * them: a regular write keeps its place in the call as index, and the first one stored under an index stays (work that
 * committed is not replaced by a second run of it); special writes (error, interrupt, resume) have one negative index
 * each, and the latest stays. Order is `(task path, task id, index)`, the order live execution applied them in.
 */
import {
  compareWritesSortKeys,
  type CheckpointPendingWrite,
  type PendingWrite,
  type SerializerProtocol,
  WRITES_IDX_MAP,
  writesSortKey,
} from "@langchain/langgraph-checkpoint";
import { packBody, unpackBody } from "./packed-body.ts";
import type { WritesRow } from "./checkpoint-rows.ts";
import { loadValue, type StoredValue, storeValue } from "./stored-value.ts";

export interface TaskWrite extends StoredValue {
  readonly index: number;
  readonly channel: string;
  readonly taskPath: string;
}

export interface OrderedWrite extends TaskWrite {
  readonly taskId: string;
}

/** PERSISTED: header of `checkpoint_writes.body`; the segments are the values in the order of `entries`. */
interface WritesHeader {
  readonly v: 1;
  /** `[index, channel, type, task path]` */
  readonly entries: readonly (readonly [index: number, channel: string, type: string, taskPath: string])[];
}

export async function serialiseWrites(
  serde: SerializerProtocol,
  writes: readonly PendingWrite[],
  taskPath: string,
): Promise<TaskWrite[]> {
  return Promise.all(
    writes.map(async ([channel, value], place) => {
      const index = Object.hasOwn(WRITES_IDX_MAP, channel) ? WRITES_IDX_MAP[channel]! : place;
      return { index, channel, taskPath, ...(await storeValue(serde, value)) };
    }),
  );
}

/** `merged` is what the row holds from now on, `accepted` the places in `incoming` that are part of it. */
export function mergeWrites(
  stored: readonly TaskWrite[],
  incoming: readonly TaskWrite[],
): { merged: TaskWrite[]; accepted: number[] } {
  const byIndex = new Map(stored.map((write) => [write.index, write]));
  for (const write of incoming) {
    if (write.index >= 0 && byIndex.has(write.index)) continue;
    byIndex.set(write.index, write);
  }
  const merged = [...byIndex.values()];
  const kept = new Set(merged);
  return { merged, accepted: [...incoming.keys()].filter((place) => kept.has(incoming[place]!)) };
}

export function packWrites(writes: readonly TaskWrite[]): Uint8Array {
  const entries = writes.map((write) => [write.index, write.channel, write.type, write.taskPath] as const);
  return packBody<WritesHeader>({ header: { v: 1, entries }, segments: writes.map((write) => write.bytes) });
}

export function unpackWrites(body: Uint8Array): TaskWrite[] {
  const { header, segments } = unpackBody<WritesHeader>(body);
  return header.entries.map(([index, channel, type, taskPath], place) => {
    return { index, channel, type, taskPath, bytes: segments[place]! };
  });
}

/** All writes of one checkpoint in replay order. */
export function orderWrites(rows: readonly WritesRow[]): OrderedWrite[] {
  const writes = rows.flatMap(({ taskId, body }) => unpackWrites(body).map((write) => ({ ...write, taskId })));
  return writes.sort((a, b) =>
    compareWritesSortKeys(writesSortKey(a.taskPath, a.taskId, a.index), writesSortKey(b.taskPath, b.taskId, b.index)),
  );
}

export async function loadWrites(
  serde: SerializerProtocol,
  writes: readonly OrderedWrite[],
): Promise<CheckpointPendingWrite[]> {
  return Promise.all(
    writes.map(async (write): Promise<CheckpointPendingWrite> => {
      return [write.taskId, write.channel, await loadValue(serde, write)];
    }),
  );
}
