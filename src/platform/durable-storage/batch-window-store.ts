/**
 * Batch windows in object SQLite: one row a live batch, rewritten when a wake is sent or comes back.
 * Owns the table; `domain/batch/offer-window.ts` owns what a window means.
 */
import type { BatchWindowStore, StoredWindow } from "../../domain/batch/stored-window.ts";
import { rowsOf, type SqlExecutor } from "./metered-sql.ts";
import type { SchemaStep } from "./schema-ladder.ts";

export const BATCH_WINDOW_SCHEMA: SchemaStep = {
  id: "batch_windows",
  statements: [
    `CREATE TABLE batch_windows (
      batch_id TEXT PRIMARY KEY,
      phase TEXT NOT NULL,
      due_at INTEGER,
      state TEXT NOT NULL
    ) WITHOUT ROWID`,
  ],
};

export class DurableBatchWindowStore implements BatchWindowStore {
  readonly #sql: SqlExecutor;

  constructor(sql: SqlExecutor) {
    this.#sql = sql;
  }

  load(batchId: string): StoredWindow | undefined {
    const rows = this.#sql.exec<{ state: string }>("SELECT state FROM batch_windows WHERE batch_id = ?", batchId);
    const row = rows.toArray()[0];
    return row === undefined ? undefined : (JSON.parse(row.state) as StoredWindow);
  }

  save(stored: StoredWindow, dueAt: number | undefined): void {
    this.#sql.exec(
      `INSERT INTO batch_windows (batch_id, phase, due_at, state) VALUES (?, ?, ?, ?)
       ON CONFLICT (batch_id) DO UPDATE SET phase = excluded.phase, due_at = excluded.due_at, state = excluded.state`,
      stored.batchId,
      stored.phase,
      dueAt ?? null,
      JSON.stringify(stored),
    );
  }

  delete(batchId: string): void {
    this.#sql.exec("DELETE FROM batch_windows WHERE batch_id = ?", batchId);
  }

  running(): readonly string[] {
    const rows = this.#sql.exec<{ batch_id: string }>(
      "SELECT batch_id FROM batch_windows WHERE phase = 'running' ORDER BY batch_id",
    );
    return rows.toArray().map((row) => row.batch_id);
  }

  all(): readonly string[] {
    const rows = this.#sql.exec<{ batch_id: string }>("SELECT batch_id FROM batch_windows ORDER BY batch_id");
    return rows.toArray().map((row) => row.batch_id);
  }

  due(now: number): readonly string[] {
    const rows = this.#sql.exec<{ batch_id: string }>(
      "SELECT batch_id FROM batch_windows WHERE due_at <= ? ORDER BY due_at, batch_id",
      now,
    );
    return rows.toArray().map((row) => row.batch_id);
  }

  nextDueAt(): number | undefined {
    const [row] = rowsOf<{ at: number | null }>(this.#sql, "SELECT min(due_at) AS at FROM batch_windows");
    return row?.at ?? undefined;
  }
}
