/**
 * Batch grants in object SQLite: the slots given to queue consumers, which outlive the object's memory.
 * Owns the table; `domain/admission` owns what a grant means. One row a grant, at most one grant a wake in flight.
 */
import type { GrantStore } from "../../agent/subagents/grant-store.ts";
import type { BatchGrant } from "../../domain/admission/admission-state.ts";
import type { SqlExecutor } from "./metered-sql.ts";
import type { SchemaStep } from "./schema-ladder.ts";

export const GRANT_SCHEMA: SchemaStep = {
  id: "batch_grants",
  statements: [
    `CREATE TABLE batch_grants (
      grant_id TEXT PRIMARY KEY,
      batch_id TEXT NOT NULL,
      slots INTEGER NOT NULL,
      expires_at INTEGER NOT NULL
    ) WITHOUT ROWID`,
  ],
};

export class DurableGrantStore implements GrantStore {
  readonly #sql: SqlExecutor;

  constructor(sql: SqlExecutor) {
    this.#sql = sql;
  }

  save(grant: BatchGrant): void {
    this.#sql.exec(
      `INSERT INTO batch_grants (grant_id, batch_id, slots, expires_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (grant_id) DO UPDATE SET slots = excluded.slots, expires_at = excluded.expires_at`,
      grant.grantId,
      grant.batchId,
      grant.slots,
      grant.expiresAt,
    );
  }

  delete(grantId: string): void {
    this.#sql.exec("DELETE FROM batch_grants WHERE grant_id = ?", grantId);
  }

  load(): readonly BatchGrant[] {
    const rows = this.#sql.exec<{ grant_id: string; batch_id: string; slots: number; expires_at: number }>(
      "SELECT grant_id, batch_id, slots, expires_at FROM batch_grants ORDER BY expires_at, grant_id",
    );
    return rows.toArray().map((row) => ({
      grantId: row.grant_id,
      batchId: row.batch_id,
      slots: row.slots,
      expiresAt: row.expires_at,
    }));
  }
}
