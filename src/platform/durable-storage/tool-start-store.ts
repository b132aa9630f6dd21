/**
 * Calls of `once` and `ask` tools that were started and have no committed result (architecture section 5).
 * Owns the table: one row a call, written before the tool acts and removed in the transaction that commits the result.
 * `safe` calls have no row. A row that outlives the process is what tells that a call's outcome is unknown.
 */
import { rowsOf, type SqlExecutor } from "./metered-sql.ts";
import type { SchemaStep } from "./schema-ladder.ts";

/** Version of the row's shape. PERSISTED. */
const TOOL_START_ROW_VERSION = 1;

export const TOOL_START_SCHEMA: SchemaStep = {
  id: "tool-starts-1",
  statements: [
    `CREATE TABLE tool_starts (
      tool_call_id TEXT PRIMARY KEY,
      v INTEGER NOT NULL,
      checkpoint_ns TEXT NOT NULL,
      executions INTEGER NOT NULL
    ) WITHOUT ROWID`,
  ],
};

/** PERSISTED in the row of a run that starts on a base with open calls. */
export interface ToolStartRecord {
  readonly toolCallId: string;
  readonly checkpointNs: string;
  readonly executions: number;
}

export class ToolStartStore {
  readonly #sql: SqlExecutor;

  constructor(sql: SqlExecutor) {
    this.#sql = sql;
  }

  /** Executions of a call that has no result; 0 for one that was not started. */
  executions(toolCallId: string): number {
    const rows = this.#sql.exec<{ executions: number }>(
      "SELECT executions FROM tool_starts WHERE tool_call_id = ?",
      toolCallId,
    );
    return rows.toArray()[0]?.executions ?? 0;
  }

  /** One more execution: one row. */
  add(toolCallId: string, checkpointNs: string): void {
    this.#sql.exec(
      `INSERT INTO tool_starts (tool_call_id, v, checkpoint_ns, executions) VALUES (?, ?, ?, 1)
       ON CONFLICT (tool_call_id) DO UPDATE SET executions = executions + 1`,
      toolCallId,
      TOOL_START_ROW_VERSION,
      checkpointNs,
    );
  }

  all(): ToolStartRecord[] {
    const query = "SELECT tool_call_id, checkpoint_ns, executions FROM tool_starts ORDER BY tool_call_id";
    const rows = rowsOf<{ tool_call_id: string; checkpoint_ns: string; executions: number }>(this.#sql, query);
    return rows.map((row) => ({
      toolCallId: row.tool_call_id,
      checkpointNs: row.checkpoint_ns,
      executions: row.executions,
    }));
  }

  /** What `all` gave, again. */
  restore({ toolCallId, checkpointNs, executions }: ToolStartRecord): void {
    this.#sql.exec(
      "INSERT OR REPLACE INTO tool_starts (tool_call_id, v, checkpoint_ns, executions) VALUES (?, ?, ?, ?)",
      toolCallId,
      TOOL_START_ROW_VERSION,
      checkpointNs,
      executions,
    );
  }

  delete(toolCallId: string): void {
    this.#sql.exec("DELETE FROM tool_starts WHERE tool_call_id = ?", toolCallId);
  }

  /** Calls of the child whose checkpoints stand under `checkpointNs`, and of its own children. */
  deleteUnder(checkpointNs: string): void {
    // "}" follows "|", the separator of levels. A handful of rows at most: a scan is cheaper than an index.
    this.#sql.exec(
      "DELETE FROM tool_starts WHERE checkpoint_ns > ? AND checkpoint_ns < ?",
      `${checkpointNs}|`,
      `${checkpointNs}}`,
    );
  }

  /** A run has ended that nobody will resume: no call is open. */
  clear(): void {
    if (this.all().length > 0) this.#sql.exec("DELETE FROM tool_starts");
  }
}
