/**
 * Checkpoint and writes rows by key: find, save. A body is bytes here; what it holds is known to
 * `checkpoint-document.ts` and `checkpoint-writes.ts`.
 *
 * Synchronous throughout: callers compose calls into one transaction, and what they read in one go is one moment of
 * the storage. Every save is one billed row, unless the body exceeds a row.
 */
import { type CheckpointKey, keyColumns } from "./checkpoint-key.ts";
import { findLateBehind, POSITION } from "./checkpoint-order.ts";
import type { SqlExecutor } from "./metered-sql.ts";
import { joinBody, saveChunks, splitBody, type StoredBody } from "./row-chunks.ts";

/**
 * Per channel with a value: its version and, when the value is not in this row, the id of the checkpoint whose row has
 * it. PERSISTED as JSON in `checkpoints.value_holders`.
 */
export type ValueHolders = Record<string, readonly [version: number | string, holderId?: string]>;

export interface CheckpointRow extends CheckpointKey {
  readonly parentId: string | null;
  readonly holders: ValueHolders;
  readonly body: Uint8Array;
}

export interface WritesRow {
  readonly taskId: string;
  readonly body: Uint8Array;
}

type StoredCheckpoint = StoredBody & {
  thread_id: string;
  checkpoint_ns: string;
  checkpoint_id: string;
  parent_id: string | null;
  value_holders: string;
};
type StoredWrites = StoredBody & { task_id: string };

const COLUMNS = "thread_id, checkpoint_ns, checkpoint_id, parent_id, value_holders, chunks, body";
const OF_CHECKPOINT = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?";

export function findCheckpoint(sql: SqlExecutor, key: CheckpointKey): CheckpointRow | undefined {
  const query = `SELECT ${COLUMNS} FROM checkpoints WHERE ${OF_CHECKPOINT}`;
  return toCheckpoint(sql, sql.exec<StoredCheckpoint>(query, ...keyColumns(key)).toArray()[0]);
}

export function findLatestCheckpoint(sql: SqlExecutor, threadId: string, ns: string): CheckpointRow | undefined {
  const query = `SELECT ${COLUMNS}, ${POSITION} AS position FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?
    ORDER BY checkpoint_id DESC LIMIT 1`;
  const [greatest] = sql.exec<StoredCheckpoint & { position: string }>(query, threadId, ns).toArray();
  if (greatest === undefined) return undefined;
  const place = { threadId, checkpointNs: ns };
  const late = findLateBehind(sql, place, greatest.position);
  return late === undefined ? toCheckpoint(sql, greatest) : findCheckpoint(sql, { ...place, ...late });
}

/** Several checkpoints of the namespace of `key`, by id; one that was deleted is absent. One statement. */
export function findCheckpoints(
  sql: SqlExecutor,
  key: CheckpointKey,
  ids: readonly string[],
): Map<string, CheckpointRow> {
  if (ids.length === 0) return new Map();
  const query = `SELECT ${COLUMNS} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?
    AND checkpoint_id IN (SELECT value FROM json_each(?))`;
  const rows = sql.exec<StoredCheckpoint>(query, key.threadId, key.checkpointNs, JSON.stringify(ids)).toArray();
  return new Map(rows.map((row) => [row.checkpoint_id, toCheckpoint(sql, row)!]));
}

/** What a checkpoint carries, without reading its body. */
export function findHolders(sql: SqlExecutor, key: CheckpointKey): ValueHolders | undefined {
  const query = `SELECT value_holders FROM checkpoints WHERE ${OF_CHECKPOINT}`;
  const row = sql.exec<{ value_holders: string }>(query, ...keyColumns(key)).toArray()[0];
  return row === undefined ? undefined : parseHolders(row.value_holders);
}

/**
 * A stored one keeps its place in the order; a new one is given it. `isNew`: known to have no row, so nothing of it needs
 * to go.
 */
export function saveCheckpoint(
  sql: SqlExecutor,
  row: CheckpointRow,
  { latePosition = null, isNew = false }: { latePosition?: string | null; isNew?: boolean } = {},
): void {
  const owner = { ...row, taskId: "" };
  const holders = JSON.stringify(row.holders);
  const [first, ...rest] = splitBody(row.body, owner, [row.parentId ?? "", holders]);
  sql.exec(
    `INSERT INTO checkpoints (${COLUMNS}, late_position) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET parent_id = excluded.parent_id, value_holders = excluded.value_holders,
       chunks = excluded.chunks, body = excluded.body`,
    ...keyColumns(row),
    row.parentId,
    holders,
    rest.length,
    first,
    latePosition,
  );
  saveChunks(sql, owner, { chunks: rest, isNew });
}

export function findWrites(sql: SqlExecutor, key: CheckpointKey): WritesRow[] {
  const query = `SELECT task_id, chunks, body FROM checkpoint_writes WHERE ${OF_CHECKPOINT}`;
  const rows = sql.exec<StoredWrites>(query, ...keyColumns(key)).toArray();
  return rows.map((row) => toWrites(sql, key, row));
}

export function findTaskWrites(sql: SqlExecutor, key: CheckpointKey, taskId: string): WritesRow | undefined {
  const query = `SELECT task_id, chunks, body FROM checkpoint_writes WHERE ${OF_CHECKPOINT} AND task_id = ?`;
  const row = sql.exec<StoredWrites>(query, ...keyColumns(key), taskId).toArray()[0];
  return row === undefined ? undefined : toWrites(sql, key, row);
}

export function saveTaskWrites(
  sql: SqlExecutor,
  key: CheckpointKey,
  { taskId, body, isNew = false }: WritesRow & { readonly isNew?: boolean },
): void {
  const owner = { ...key, taskId };
  const [first, ...rest] = splitBody(body, owner, []);
  sql.exec(
    `INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, chunks, body)
     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET chunks = excluded.chunks, body = excluded.body`,
    ...keyColumns(key),
    taskId,
    rest.length,
    first,
  );
  saveChunks(sql, owner, { chunks: rest, isNew });
}

export function parseHolders(json: string): ValueHolders {
  return JSON.parse(json) as ValueHolders;
}

export function toWrites(sql: SqlExecutor, key: CheckpointKey, row: StoredWrites): WritesRow {
  return { taskId: row.task_id, body: joinBody(sql, { ...key, taskId: row.task_id }, row) };
}

function toCheckpoint(sql: SqlExecutor, row: StoredCheckpoint | undefined): CheckpointRow | undefined {
  if (row === undefined) return undefined;
  const key = { threadId: row.thread_id, checkpointNs: row.checkpoint_ns, checkpointId: row.checkpoint_id };
  const body = joinBody(sql, { ...key, taskId: "" }, row);
  return { ...key, parentId: row.parent_id, holders: parseHolders(row.value_holders), body };
}
