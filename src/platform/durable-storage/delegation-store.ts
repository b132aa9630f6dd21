/**
 * Delegations in flight: which child runs under which checkpoint namespace, and how many of its steps were told.
 * Owns the durable "this delegation started" mark, written once per task id (contracts, Delegation). A row lives from
 * acceptance until the task's result commits. Does not own the ledger, which is a state channel.
 */
import { rowsOf, type SqlExecutor } from "./metered-sql.ts";

/** Version of the row's shape. PERSISTED. */
const DELEGATION_ROW_VERSION = 1;

export interface DelegationRecord {
  readonly taskId: string;
  readonly runId: string;
  readonly subagentType: string;
  /** The child's checkpoints stand under this namespace. */
  readonly checkpointNs: string;
  readonly steps: number;
  readonly cancelled: boolean;
}

interface DelegationRow extends Record<string, SqlStorageValue> {
  task_id: string;
  run_id: string;
  subagent_type: string;
  checkpoint_ns: string;
  steps: number;
  cancelled: number;
}

export class DelegationStore {
  readonly #sql: SqlExecutor;

  constructor(sql: SqlExecutor) {
    this.#sql = sql;
  }

  save(delegation: DelegationRecord): void {
    this.#sql.exec(
      `INSERT INTO delegations (task_id, v, run_id, subagent_type, checkpoint_ns, steps, cancelled)
       VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (task_id) DO UPDATE SET run_id = excluded.run_id, steps = excluded.steps, cancelled = excluded.cancelled`,
      delegation.taskId,
      DELEGATION_ROW_VERSION,
      delegation.runId,
      delegation.subagentType,
      delegation.checkpointNs,
      delegation.steps,
      delegation.cancelled ? 1 : 0,
    );
  }

  find(taskId: string): DelegationRecord | undefined {
    return this.#first("SELECT * FROM delegations WHERE task_id = ?", taskId);
  }

  /** At most `max_total_per_run` rows are in flight, so a scan is a handful of reads. */
  findByNamespace(checkpointNs: string): DelegationRecord | undefined {
    return this.#first("SELECT * FROM delegations WHERE checkpoint_ns = ?", checkpointNs);
  }

  /** Delegations of the child under `checkpointNs`, and of theirs; the innermost first. */
  nestedIn(checkpointNs: string): DelegationRecord[] {
    // "}" follows "|", the separator of levels.
    const query = `SELECT * FROM delegations WHERE checkpoint_ns > ? AND checkpoint_ns < ?
      ORDER BY length(checkpoint_ns) DESC, task_id`;
    return this.#sql.exec<DelegationRow>(query, `${checkpointNs}|`, `${checkpointNs}}`).toArray().map(toRecord);
  }

  ofRun(runId: string): DelegationRecord[] {
    return this.#sql.exec<DelegationRow>("SELECT * FROM delegations WHERE run_id = ?", runId).toArray().map(toRecord);
  }

  all(): DelegationRecord[] {
    return rowsOf<DelegationRow>(this.#sql, "SELECT * FROM delegations ORDER BY task_id").map(toRecord);
  }

  delete(taskId: string): void {
    this.#sql.exec("DELETE FROM delegations WHERE task_id = ?", taskId);
  }

  #first(query: string, binding: string): DelegationRecord | undefined {
    const [row] = this.#sql.exec<DelegationRow>(query, binding).toArray();
    return row === undefined ? undefined : toRecord(row);
  }
}

function toRecord(row: DelegationRow): DelegationRecord {
  return {
    taskId: row.task_id,
    runId: row.run_id,
    subagentType: row.subagent_type,
    checkpointNs: row.checkpoint_ns,
    steps: row.steps,
    cancelled: row.cancelled === 1,
  };
}
