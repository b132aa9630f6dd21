/**
 * Deliveries that wait: one row a run that asked for one, from its end until it was delivered or given up.
 * Owns the table. A thread without deliveries has no row here, and its empty table costs no read.
 */
import type { PendingDelivery } from "../../domain/webhook/delivery.ts";
import { rowsOf, type SqlExecutor } from "./metered-sql.ts";
import type { SchemaStep } from "./schema-ladder.ts";

/** Version of the row's shape. PERSISTED. */
const WEBHOOK_ROW_VERSION = 1;

export const WEBHOOK_SCHEMA: SchemaStep = {
  id: "webhooks-1",
  statements: [
    `CREATE TABLE webhook_deliveries (
      run_id TEXT PRIMARY KEY,
      v INTEGER NOT NULL,
      url TEXT NOT NULL,
      attempts INTEGER NOT NULL,
      due_at INTEGER NOT NULL
    ) WITHOUT ROWID`,
  ],
};

type WebhookRow = { run_id: string; url: string; attempts: number; due_at: number };

export class WebhookStore {
  readonly #sql: SqlExecutor;

  constructor(sql: SqlExecutor) {
    this.#sql = sql;
  }

  /** Inserts or replaces: one row. */
  save({ runId, url, attempts, dueAt }: PendingDelivery): void {
    this.#sql.exec(
      `INSERT INTO webhook_deliveries (run_id, v, url, attempts, due_at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (run_id) DO UPDATE SET attempts = excluded.attempts, due_at = excluded.due_at`,
      runId,
      WEBHOOK_ROW_VERSION,
      url,
      attempts,
      dueAt,
    );
  }

  find(runId: string): PendingDelivery | undefined {
    const rows = this.#sql.exec<WebhookRow>("SELECT * FROM webhook_deliveries WHERE run_id = ?", runId);
    return rows.toArray().map(toDelivery)[0];
  }

  /** The one that is due soonest. */
  earliest(): PendingDelivery | undefined {
    const query = "SELECT * FROM webhook_deliveries ORDER BY due_at, run_id LIMIT 1";
    return rowsOf<WebhookRow>(this.#sql, query).map(toDelivery)[0];
  }

  count(): number {
    return this.#sql.exec<{ n: number }>("SELECT count(*) AS n FROM webhook_deliveries").toArray()[0]?.n ?? 0;
  }

  delete(runId: string): void {
    this.#sql.exec("DELETE FROM webhook_deliveries WHERE run_id = ?", runId);
  }
}

function toDelivery(row: WebhookRow): PendingDelivery {
  return { runId: row.run_id, url: row.url, attempts: row.attempts, dueAt: row.due_at };
}
