/**
 * Removes a thread's batches from D1 with everything that hangs on them. Called once they have been cancelled, so nobody
 * claims from them any more. Bounded statements; a batch's own row goes last, so a deletion that died is found and finished
 * by the next one.
 */
import type { D1Access } from "./fence.ts";

/** Rows one statement deletes: far under D1's 30 s a statement, whatever prompts and results they hold. */
const DELETE_BATCH_ROWS_CHUNK = 1_000;
/** Batches looked up at once; the loop asks again. */
const DELETE_BATCHES_PAGE = 100;

/** Tables that hang on a batch, and what of their key follows its id. */
const PARTS: readonly (readonly [table: string, key: string])[] = [
  ["batch_items", "ordinal"],
  ["batch_events", "ordinal, attempt"],
  ["batch_outputs", "ordinal"],
  ["batch_files", "path, part"],
  ["leases", "grant_id"],
  ["batch_definitions", "batch_id"],
  ["live_batches", "batch_id"],
];

/** Answers how many batches were removed. `db` stands behind the fence that the thread's deletion has set. */
export async function deleteThreadBatches(db: D1Access, owner: string, threadId: string): Promise<number> {
  const forget = db.prepare("DELETE FROM batch_submissions WHERE owner = ?1 AND thread_id = ?2");
  await db.batch([forget.bind(owner, threadId)]);
  const find = db
    .prepare("SELECT batch_id FROM batches WHERE owner = ?1 AND thread_id = ?2 LIMIT ?3")
    .bind(owner, threadId, DELETE_BATCHES_PAGE);
  let removed = 0;
  for (;;) {
    const { results } = await find.all<{ batch_id: string }>();
    if (results.length === 0) return removed;
    for (const { batch_id: batchId } of results) await deleteBatch(db, batchId);
    removed += results.length;
  }
}

/** Of one that nobody claims from any more. */
export async function deleteBatch(db: D1Access, batchId: string): Promise<void> {
  for (const [table, key] of PARTS) {
    const statement = db
      .prepare(
        `DELETE FROM ${table} WHERE batch_id = ?1 AND (${key}) IN (SELECT ${key} FROM ${table} WHERE batch_id = ?1 LIMIT ?2)`,
      )
      .bind(batchId, DELETE_BATCH_ROWS_CHUNK);
    let changes = DELETE_BATCH_ROWS_CHUNK;
    while (changes === DELETE_BATCH_ROWS_CHUNK) changes = (await db.batch([statement]))[0]?.meta.changes ?? 0;
  }
  await db.batch([db.prepare("DELETE FROM batches WHERE batch_id = ?1").bind(batchId)]);
}
