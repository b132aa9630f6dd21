/**
 * Bodies larger than a row: the first part stays in the row, the rest goes to `checkpoint_chunks`.
 *
 * Owns every statement that writes or reads `checkpoint_chunks`. Invariant: no row of the checkpointer, all columns
 * together, exceeds `ROW_BYTES_MAX` (local workerd accepts larger ones, production refuses them).
 */
import { invariant } from "../../domain/shared/assert.ts";
import { type CheckpointKey, keyColumns } from "./checkpoint-key.ts";
import type { SqlExecutor } from "./metered-sql.ts";

/** SQLite in a Durable Object refuses rows past 2 MB; the difference is room for SQLite's own bytes in the row. */
export const ROW_BYTES_MAX = 1_900_000;
/** Room for integers and the record header beside the counted columns. */
const ROW_RESERVED_BYTES = 64;

export interface ChunkOwner extends CheckpointKey {
  /** Empty for the checkpoint's own body; LangGraph's task ids never are. */
  readonly taskId: string;
}

/** A type alias, not an interface: rows must be assignable to the cursor's index signature. */
export type StoredBody = { readonly chunks: number; readonly body: ArrayBuffer };

const encoder = new TextEncoder();

/** Cuts `body` so that its first part fits into a row beside the text columns `beside`, and each chunk beside its key. */
export function splitBody(body: Uint8Array, owner: ChunkOwner, beside: readonly string[]): Uint8Array[] {
  const keyBytes = bytesOf([...keyColumns(owner), owner.taskId]);
  const firstMax = ROW_BYTES_MAX - ROW_RESERVED_BYTES - keyBytes - bytesOf(beside);
  invariant(firstMax > 0, "the columns beside a checkpoint body exceed a row");
  const parts = [body.subarray(0, firstMax)];
  const chunkMax = ROW_BYTES_MAX - ROW_RESERVED_BYTES - keyBytes;
  for (let at = firstMax; at < body.byteLength; at += chunkMax) parts.push(body.subarray(at, at + chunkMax));
  return parts;
}

/** Replaces the chunks of `owner`; a new one has none to replace. */
export function saveChunks(
  sql: SqlExecutor,
  owner: ChunkOwner,
  { chunks, isNew }: { readonly chunks: readonly Uint8Array[]; readonly isNew: boolean },
): void {
  if (!isNew) {
    sql.exec(
      `DELETE FROM checkpoint_chunks
       WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? AND task_id = ?`,
      ...keyColumns(owner),
      owner.taskId,
    );
  }
  for (const [chunk, body] of chunks.entries()) {
    sql.exec(
      `INSERT INTO checkpoint_chunks (thread_id, checkpoint_ns, checkpoint_id, task_id, chunk, body)
       VALUES (?, ?, ?, ?, ?, ?)`,
      ...keyColumns(owner),
      owner.taskId,
      chunk,
      body,
    );
  }
}

/** The body as it was before `splitBody`. */
export function joinBody(sql: SqlExecutor, owner: ChunkOwner, stored: StoredBody): Uint8Array {
  const first = new Uint8Array(stored.body);
  if (stored.chunks === 0) return first;
  const query = `SELECT body FROM checkpoint_chunks
    WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? AND task_id = ? ORDER BY chunk`;
  const rows = sql.exec<{ body: ArrayBuffer }>(query, ...keyColumns(owner), owner.taskId).toArray();
  invariant(rows.length === stored.chunks, `checkpoint ${owner.checkpointId} lost chunks of its body`);
  return concatenate([first, ...rows.map((row) => new Uint8Array(row.body))]);
}

function concatenate(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((bytes, part) => bytes + part.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.byteLength;
  }
  return whole;
}

function bytesOf(columns: readonly string[]): number {
  return columns.reduce((bytes, column) => bytes + encoder.encode(column).byteLength, 0);
}
