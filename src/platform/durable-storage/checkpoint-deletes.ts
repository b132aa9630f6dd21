/**
 * Deletes over all three checkpoint tables. Synchronous, so they join the caller's transaction.
 * Every deleted row is billed as a written one.
 */
import { invariant } from "../../domain/shared/assert.ts";
import type { SqlExecutor } from "./metered-sql.ts";

const TABLES = ["checkpoints", "checkpoint_writes", "checkpoint_chunks"] as const;

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

/** Deletes what is older than `beforeId` in one namespace. */
export function deleteOlderRows(sql: SqlExecutor, threadId: string, ns: string, beforeId: string): void {
  for (const table of TABLES) {
    sql.exec(
      `DELETE FROM ${table} WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id < ?`,
      threadId,
      ns,
      beforeId,
    );
  }
}
