/**
 * Which run a thread's `Idempotency-Key` stands for. Owns the table: one row a create that carried the header, written in
 * the transaction that accepts the run, so a refused create leaves its key free. A create without the header costs nothing.
 */
import type { SqlExecutor } from "./metered-sql.ts";
import type { SchemaStep } from "./schema-ladder.ts";

/** Version of the row's shape. PERSISTED. */
const KEY_ROW_VERSION = 1;

export const IDEMPOTENCY_SCHEMA: SchemaStep = {
  id: "idempotency-1",
  statements: [
    `CREATE TABLE idempotency_keys (
      idempotency_key TEXT PRIMARY KEY,
      v INTEGER NOT NULL,
      body_hash TEXT NOT NULL,
      run_id TEXT NOT NULL,
      expires_at INTEGER
    ) WITHOUT ROWID`,
  ],
};

export interface KeyedRun {
  readonly key: string;
  readonly bodyHash: string;
  readonly runId: string;
  /** Milliseconds since the epoch; `null`: as long as the thread is there. */
  readonly expiresAt: number | null;
}

export class IdempotencyStore {
  readonly #sql: SqlExecutor;

  constructor(sql: SqlExecutor) {
    this.#sql = sql;
  }

  /** One row. */
  add({ key, bodyHash, runId, expiresAt }: KeyedRun): void {
    this.#sql.exec(
      "INSERT INTO idempotency_keys (idempotency_key, v, body_hash, run_id, expires_at) VALUES (?, ?, ?, ?, ?)",
      key,
      KEY_ROW_VERSION,
      bodyHash,
      runId,
      expiresAt,
    );
  }

  find(key: string): KeyedRun | undefined {
    const [row] = this.#sql
      .exec<{ body_hash: string; run_id: string; expires_at: number | null }>(
        "SELECT body_hash, run_id, expires_at FROM idempotency_keys WHERE idempotency_key = ?",
        key,
      )
      .toArray();
    if (row === undefined) return undefined;
    return { key, bodyHash: row.body_hash, runId: row.run_id, expiresAt: row.expires_at };
  }

  count(): number {
    return this.#sql.exec<{ n: number }>("SELECT count(*) AS n FROM idempotency_keys").toArray()[0]?.n ?? 0;
  }

  expire(now: number): void {
    this.#sql.exec("DELETE FROM idempotency_keys WHERE expires_at <= ?", now);
  }
}
