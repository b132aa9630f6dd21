/**
 * Deletes over all three checkpoint tables. Synchronous, so they join the caller's transaction.
 * Every deleted row is billed as a written one.
 */
import { invariant } from "../../domain/shared/assert.ts";
import { POSITION } from "./checkpoint-order.ts";
import type { SqlExecutor } from "./metered-sql.ts";

const TABLES = ["checkpoints", "checkpoint_writes", "checkpoint_chunks"] as const;

/** Their rows tell the positions of the others. */
const CHECKPOINTS_LAST = TABLES.toReversed();

export function deleteThreadRows(sql: SqlExecutor, threadId: string): void {
  for (const table of TABLES) sql.exec(`DELETE FROM ${table} WHERE thread_id = ?`, threadId);
}

/** Deletes namespace `ns` and everything nested under it (`ns|…`), nothing that merely starts with the same letters. */
export function deleteNamespaceRows(sql: SqlExecutor, threadId: string, ns: string): void {
  invariant(ns !== "", "the root namespace is deleted with its thread only");
  // "}" follows "|", the separator of levels, so the range is exactly what starts with `ns|`.
  for (const table of TABLES) {
    sql.exec(`DELETE FROM ${table} WHERE thread_id = ? AND checkpoint_ns = ?`, threadId, ns);
    sql.exec(
      `DELETE FROM ${table} WHERE thread_id = ? AND checkpoint_ns >= ? AND checkpoint_ns < ?`,
      threadId,
      `${ns}|`,
      `${ns}}`,
    );
  }
}

/** Deletes what stands before a position in one namespace. */
export function deleteOlderRows(sql: SqlExecutor, threadId: string, ns: string, before: string): void {
  const older = `SELECT checkpoint_id FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND ${POSITION} < ?3`;
  for (const table of CHECKPOINTS_LAST) {
    const query = `DELETE FROM ${table} WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id IN (${older})`;
    sql.exec(query, threadId, ns, before);
  }
}

/** Deletes what stands behind a position in every namespace. */
export function deleteNewerRows(sql: SqlExecutor, threadId: string, after: string): void {
  const newer = `SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = ?1 AND ${POSITION} > ?2`;
  for (const table of CHECKPOINTS_LAST) {
    const query = `DELETE FROM ${table} WHERE thread_id = ?1 AND (checkpoint_ns, checkpoint_id) IN (${newer})`;
    sql.exec(query, threadId, after);
  }
}
