/**
 * Run rows of one thread (P1, P3: the thread object is their only writer). A row is inserted in the transaction that
 * marks the run running, with its input and the head it starts from, and updated once at its end.
 * Does not own frames (their id reservation rides in the row) or events.
 */
import type { RecoveryRecord } from "../../domain/run/recovery.ts";
import type { CallerUsage } from "../../domain/run/run-usage.ts";
import type { ManagedSubagent } from "../../domain/delegation/managed-subagent.ts";
import { isTerminal, type RunStatus } from "../../domain/run/run-status.ts";
import type { Principal } from "../../domain/trust/principal.ts";
import type { AdjustedOptions } from "../../domain/run/adjusted-options.ts";
import type { RunStopReason } from "../../domain/run/stop-reason.ts";
import type { RunCommand } from "../../protocol/thread-rpc.ts";
import type { SqlExecutor } from "./metered-sql.ts";

/** Version of the row's shape. PERSISTED. */
const RUN_ROW_VERSION = 1;

export interface RunError {
  readonly error: string;
  readonly message: string;
}

/** PERSISTED: the accepted create, and what it was accepted with. */
export interface StoredRunCommand extends RunCommand {
  /** Who asked for the run: every start of it judges with this one. Absent in older rows. */
  readonly principal?: Principal;
  /** The managed subagents of this run, whatever becomes of the stored ones; absent for none, and in older rows. */
  readonly managed_subagents?: readonly ManagedSubagent[];
}

/** PERSISTED: what the server says about a run beside its status. */
export interface RunNotes {
  readonly v: 1;
  /** Options that are not used as the client asked. */
  readonly adjusted_options?: AdjustedOptions;
  /** Why the run was held back. */
  readonly stop_reason?: RunStopReason;
}

export interface RunRecord {
  readonly runId: string;
  readonly status: RunStatus;
  readonly graphId: string;
  /** The accepted create; its input already carries message ids, so that every start of the run writes the same. */
  readonly command: StoredRunCommand;
  readonly baseCheckpointId: string | null;
  /** The head when the run ended; what `join` answers with. */
  readonly finalCheckpointId: string | null;
  readonly cancelRequested: boolean;
  /** 1, and one more for each recovery. */
  readonly attempt: number;
  readonly recovery: RecoveryRecord;
  /** Frame ids below this were reserved; after recovery numbering goes on here. */
  readonly framesReserved: number;
  readonly error: RunError | null;
  /** What the run's graph asked, when it ended waiting for an answer. */
  readonly interrupts: readonly unknown[] | null;
  /** By caller and model, once the run has ended; null before, and in older rows. */
  readonly usage: readonly CallerUsage[] | null;
  /** Absent when there is nothing to say, and in older rows. */
  readonly notes?: RunNotes;
  readonly createdAt: number;
  readonly updatedAt: number;
}

interface RunRow extends Record<string, SqlStorageValue> {
  run_id: string;
  status: string;
  graph_id: string;
  command: string;
  base_checkpoint_id: string | null;
  final_checkpoint_id: string | null;
  cancel_requested: number;
  attempt: number;
  recovery: string;
  frames_reserved: number;
  error: string | null;
  interrupts: string | null;
  usage: string | null;
  notes: string | null;
  created_at: number;
  updated_at: number;
}

/** Run ids are UUID v7: their order is the order of acceptance. */
export class RunStore {
  readonly #sql: SqlExecutor;

  constructor(sql: SqlExecutor) {
    this.#sql = sql;
  }

  /** Inserts or replaces the row: one billed row. */
  save(run: RunRecord): void {
    this.#sql.exec(
      `INSERT INTO runs (run_id, v, status, graph_id, command, base_checkpoint_id, final_checkpoint_id, cancel_requested, attempt, recovery,
         frames_reserved, error, interrupts, usage, notes, created_at, updated_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (run_id) DO UPDATE SET status = excluded.status, final_checkpoint_id = excluded.final_checkpoint_id, cancel_requested = excluded.cancel_requested,
         attempt = excluded.attempt, recovery = excluded.recovery, frames_reserved = excluded.frames_reserved,
         error = excluded.error, interrupts = excluded.interrupts, usage = excluded.usage, notes = excluded.notes, updated_at = excluded.updated_at`,
      run.runId,
      RUN_ROW_VERSION,
      run.status,
      run.graphId,
      JSON.stringify(run.command),
      run.baseCheckpointId,
      run.finalCheckpointId,
      run.cancelRequested ? 1 : 0,
      run.attempt,
      JSON.stringify(run.recovery),
      run.framesReserved,
      run.error === null ? null : JSON.stringify(run.error),
      run.interrupts === null ? null : JSON.stringify(run.interrupts),
      run.usage === null ? null : JSON.stringify(run.usage),
      run.notes === undefined ? null : JSON.stringify(run.notes),
      run.createdAt,
      run.updatedAt,
    );
  }

  find(runId: string): RunRecord | undefined {
    const [row] = this.#sql.exec<RunRow>("SELECT * FROM runs WHERE run_id = ?", runId).toArray();
    return row === undefined ? undefined : toRecord(row);
  }

  newest(): RunRecord | undefined {
    const [row] = this.#sql.exec<RunRow>("SELECT * FROM runs ORDER BY run_id DESC LIMIT 1").toArray();
    return row === undefined ? undefined : toRecord(row);
  }

  /** Which graph the newest run used; its command is not loaded. */
  newestGraphId(): string | undefined {
    const rows = this.#sql.exec<{ graph_id: string }>("SELECT graph_id FROM runs ORDER BY run_id DESC LIMIT 1");
    return rows.toArray()[0]?.graph_id;
  }

  /** Runs storage calls active. At most one under `reject`. */
  active(): RunRecord[] {
    // The newest row holds every active run: an older run ended before a newer one was accepted.
    const [newest] = this.#sql
      .exec<{ run_id: string; status: string }>("SELECT run_id, status FROM runs ORDER BY run_id DESC LIMIT 1")
      .toArray();
    if (newest === undefined || isTerminal(newest.status as RunStatus)) return [];
    const run = this.find(newest.run_id);
    return run === undefined ? [] : [run];
  }

  /** Newest first. */
  list(query: { limit: number; offset: number; status?: RunStatus }): RunRecord[] {
    const rows =
      query.status === undefined
        ? this.#sql.exec<RunRow>("SELECT * FROM runs ORDER BY run_id DESC LIMIT ? OFFSET ?", query.limit, query.offset)
        : this.#sql.exec<RunRow>(
            "SELECT * FROM runs WHERE status = ? ORDER BY run_id DESC LIMIT ? OFFSET ?",
            query.status,
            query.limit,
            query.offset,
          );
    return rows.toArray().map(toRecord);
  }

  /** Base checkpoints of the newest runs, newest first; `null` for a run that started an empty thread. */
  newestBases(limit: number): (string | null)[] {
    const rows = this.#sql.exec<{ base_checkpoint_id: string | null }>(
      "SELECT base_checkpoint_id FROM runs ORDER BY run_id DESC LIMIT ?",
      limit,
    );
    return rows.toArray().map((row) => row.base_checkpoint_id);
  }

  delete(runId: string): void {
    this.#sql.exec("DELETE FROM runs WHERE run_id = ?", runId);
  }
}

function toRecord(row: RunRow): RunRecord {
  return {
    runId: row.run_id,
    status: row.status as RunStatus,
    graphId: row.graph_id,
    command: JSON.parse(row.command) as StoredRunCommand,
    baseCheckpointId: row.base_checkpoint_id,
    finalCheckpointId: row.final_checkpoint_id,
    cancelRequested: row.cancel_requested === 1,
    attempt: row.attempt,
    recovery: JSON.parse(row.recovery) as RecoveryRecord,
    framesReserved: row.frames_reserved,
    error: row.error === null ? null : (JSON.parse(row.error) as RunError),
    interrupts: row.interrupts === null ? null : (JSON.parse(row.interrupts) as unknown[]),
    usage: row.usage === null ? null : (JSON.parse(row.usage) as CallerUsage[]),
    ...(row.notes === null ? {} : { notes: JSON.parse(row.notes) as RunNotes }),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
