/**
 * Takes back what a run did to the checkpoint tables: everything newer than what stood when it started, and the writes it
 * put on checkpoints it found.
 *
 * A run adds writes to checkpoints that it did not make: its input's delta writes, its answers and its tasks' results go
 * onto the heads it starts from. A head that has writes already (its graph waits) gets them copied first, under a thread
 * id of the run's own, so that exactly they come back. Synchronous: joins the caller's transaction.
 */
import type { CheckpointKey } from "./checkpoint-key.ts";
import { deleteNewerRows as deleteRowsBehind, deleteThreadRows } from "./checkpoint-deletes.ts";
import { positionOf } from "./checkpoint-order.ts";
import type { SqlExecutor } from "./metered-sql.ts";

export type CheckpointPlace = Omit<CheckpointKey, "threadId">;

export interface RunCopies {
  readonly threadId: string;
  readonly runId: string;
}

/** Chunks with an empty task id are of the checkpoint's own body. */
const WRITES = [
  { table: "checkpoint_writes", columns: "checkpoint_ns, checkpoint_id, task_id, chunks, body", of: "true" },
  { table: "checkpoint_chunks", columns: "checkpoint_ns, checkpoint_id, task_id, chunk, body", of: "task_id <> ''" },
] as const;

/** Copies the writes that stand on `places`; answers the places that have any. No row where there are none. */
export function copyWrites(
  sql: SqlExecutor,
  { threadId, runId }: RunCopies,
  places: readonly CheckpointPlace[],
): CheckpointPlace[] {
  const written = places.filter((place) => hasWrites(sql, threadId, place));
  for (const place of written) transferWrites(sql, place, { from: threadId, to: copyId(threadId, runId) });
  return written;
}

/** Deletes what is newer than `newestId` in every namespace; everything for `null`. */
export function deleteNewerRows(sql: SqlExecutor, threadId: string, newestId: string | null): void {
  if (newestId === null) {
    deleteThreadRows(sql, threadId);
    return;
  }
  deleteRowsBehind(sql, threadId, positionOf(sql, threadId, newestId));
}

/** What stands on `places` afterwards is what `copyWrites` found there, and nothing where it found nothing. */
export function restoreWrites(
  sql: SqlExecutor,
  { threadId, runId }: RunCopies,
  places: readonly CheckpointPlace[],
): void {
  for (const place of places) {
    for (const { table, of } of WRITES) {
      sql.exec(
        `DELETE FROM ${table} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? AND ${of}`,
        threadId,
        place.checkpointNs,
        place.checkpointId,
      );
    }
    transferWrites(sql, place, { from: copyId(threadId, runId), to: threadId });
  }
  forgetCopies(sql, { threadId, runId });
}

export function forgetCopies(sql: SqlExecutor, { threadId, runId }: RunCopies): void {
  deleteThreadRows(sql, copyId(threadId, runId));
}

function hasWrites(sql: SqlExecutor, threadId: string, place: CheckpointPlace): boolean {
  const query = `SELECT 1 FROM checkpoint_writes
    WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? LIMIT 1`;
  return sql.exec(query, threadId, place.checkpointNs, place.checkpointId).toArray().length > 0;
}

function transferWrites(
  sql: SqlExecutor,
  place: CheckpointPlace,
  { from, to }: { readonly from: string; readonly to: string },
): void {
  for (const { table, columns, of } of WRITES) {
    sql.exec(
      `INSERT INTO ${table} (thread_id, ${columns}) SELECT ?, ${columns} FROM ${table}
       WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? AND ${of}`,
      to,
      from,
      place.checkpointNs,
      place.checkpointId,
    );
  }
}

/** No thread of a client's is called so: a slash does not fit its id. PERSISTED. */
function copyId(threadId: string, runId: string): string {
  return `base/${runId}/${threadId}`;
}
