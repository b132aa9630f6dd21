/**
 * Run rows of one thread (P1, P3: the thread object is their only writer). A row is inserted in the transaction that
 * accepts the run; the one that marks it running, most often the same, writes the head it starts from. It is updated once
 * at the run's end. Does not own frames (their id reservation rides in the row) or events.
 *
 * Runs start in the order of their ids. So above the newest row that started there are only runs that wait, and runs
 * that ended before they started (`attempt` 0).
 */
import type { ActiveRun, CancelAction } from "../../domain/run/multitask.ts";
import type { RecoveryRecord } from "../../domain/run/recovery.ts";
import type { CallerUsage } from "../../domain/run/run-usage.ts";
import type { ManagedSubagent } from "../../domain/delegation/managed-subagent.ts";
import type { RunStatus } from "../../domain/run/run-status.ts";
import type { Principal } from "../../domain/trust/principal.ts";
import type { AdjustedOptions } from "../../domain/run/adjusted-options.ts";
import type { RunStopReason } from "../../domain/run/stop-reason.ts";
import type { RunCommand } from "../../protocol/thread-rpc.ts";
import type { DelegationRecord } from "./delegation-store.ts";
import { rowsOf, type SqlExecutor } from "./metered-sql.ts";
import type { ToolStartRecord } from "./tool-start-store.ts";

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
  /** Of the run's graph, when it was accepted; absent for a graph without versions, and in older rows. */
  readonly graph_version?: string;
}

/** PERSISTED: the request to end the run. */
export interface RunCancelRequest {
  readonly v: 1;
  readonly action: CancelAction;
  /** In the client's words. */
  readonly reason?: string;
}

/** PERSISTED: what a run's base held beside root checkpoints, so that a rollback brings back exactly that. */
export interface RunBaseExtras {
  readonly v: 1;
  /** The newest checkpoint of any namespace when the run started. */
  readonly newestCheckpointId: string | null;
  /** Checkpoints a run writes on without making them: their writes were copied. */
  readonly copied: readonly { readonly checkpointNs: string; readonly checkpointId: string }[];
  readonly delegations: readonly DelegationRecord[];
  readonly toolStarts: readonly ToolStartRecord[];
  /** A later run started from where this one ended: what was kept is gone. */
  readonly isForgotten?: true;
}

export interface RunRecord {
  readonly runId: string;
  readonly status: RunStatus;
  readonly graphId: string;
  /** The accepted create; its input already carries message ids, so that every start of the run writes the same. */
  readonly command: StoredRunCommand;
  /** The head when the run started; null before, and on an empty thread. */
  readonly baseCheckpointId: string | null;
  /** Absent where the base has nothing beside root checkpoints, and in older rows. */
  readonly baseExtras?: RunBaseExtras;
  /** The head when the run ended; what `join` answers with. */
  readonly finalCheckpointId: string | null;
  readonly cancelRequested: boolean;
  /** Absent in rows of an older version, whose action is `interrupt`. */
  readonly cancel?: RunCancelRequest;
  /** When a pending run may start; absent for at once. */
  readonly dueAt?: number;
  /** The oldest run that was active when this one was accepted; absent when there was none. Written once. */
  readonly activeFrom?: string;
  /** 0 until the run starts, then 1, and one more for each recovery. */
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
  active_from: string | null;
  due_at: number | null;
  cancel: string | null;
  base_extras: string | null;
  created_at: number;
  updated_at: number;
}

/** What decides over a run: its row without its create. */
interface DecisionRow extends Record<string, SqlStorageValue> {
  run_id: string;
  status: string;
  cancel_requested: number;
  cancel: string | null;
  due_at: number | null;
}

/** Runs that ended before they started say nothing of the thread's state. */
const NEVER_STARTED = "(attempt = 0 AND status <> 'pending')";

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
         frames_reserved, error, interrupts, usage, notes, active_from, due_at, cancel, base_extras, created_at, updated_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (run_id) DO UPDATE SET status = excluded.status, command = excluded.command, base_checkpoint_id = excluded.base_checkpoint_id, final_checkpoint_id = excluded.final_checkpoint_id, cancel_requested = excluded.cancel_requested,
         attempt = excluded.attempt, recovery = excluded.recovery, frames_reserved = excluded.frames_reserved,
         error = excluded.error, interrupts = excluded.interrupts, usage = excluded.usage, notes = excluded.notes,
         due_at = excluded.due_at, cancel = excluded.cancel, base_extras = excluded.base_extras, updated_at = excluded.updated_at`,
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
      run.activeFrom ?? null,
      run.dueAt ?? null,
      run.cancel === undefined ? null : JSON.stringify(run.cancel),
      run.baseExtras === undefined ? null : JSON.stringify(run.baseExtras),
      run.createdAt,
      run.updatedAt,
    );
  }

  find(runId: string): RunRecord | undefined {
    const [row] = rowsOf<RunRow>(this.#sql, "SELECT * FROM runs WHERE run_id = ?", runId);
    return row === undefined ? undefined : toRecord(row);
  }

  /** The run that tells how the thread is: its newest, leaving out those that ended before they started. */
  newest(): RunRecord | undefined {
    return this.#first(`SELECT * FROM runs WHERE NOT ${NEVER_STARTED} ORDER BY run_id DESC LIMIT 1`);
  }

  newestStarted(): RunRecord | undefined {
    return this.#first("SELECT * FROM runs WHERE attempt > 0 ORDER BY run_id DESC LIMIT 1");
  }

  /** Of any run: a later one is accepted after it. */
  newestCreatedAt(): number | undefined {
    const query = "SELECT created_at FROM runs ORDER BY run_id DESC LIMIT 1";
    return rowsOf<{ created_at: number }>(this.#sql, query)[0]?.created_at;
  }

  /** Which graph the newest run used that started; its command is not loaded. */
  newestGraphId(): string | undefined {
    const query = "SELECT graph_id FROM runs WHERE attempt > 0 ORDER BY run_id DESC LIMIT 1";
    return rowsOf<{ graph_id: string }>(this.#sql, query)[0]?.graph_id;
  }

  /** Runs storage calls active, oldest first, with everything their creates carry. */
  active(): RunRecord[] {
    return this.activeRuns().flatMap(({ runId }) => this.find(runId) ?? []);
  }

  /** The run storage calls running; a thread has at most one. */
  running(): RunRecord | undefined {
    const [first] = this.activeRuns();
    return first?.status === "running" ? this.find(first.runId) : undefined;
  }

  /** Runs storage calls active, oldest first; their creates are not loaded. */
  activeRuns(): ActiveRun[] {
    const query = "SELECT run_id, status, active_from FROM runs ORDER BY run_id DESC LIMIT 1";
    const [newest] = rowsOf<{ run_id: string; status: string; active_from: string | null }>(this.#sql, query);
    if (newest === undefined) return [];
    // What is active now was active when the newest was accepted, or is the newest: the rows below need no look.
    const rows = rowsOf<DecisionRow>(
      this.#sql,
      `SELECT run_id, status, cancel_requested, cancel, due_at FROM runs
       WHERE run_id >= ? AND status IN ('pending', 'running') ORDER BY run_id`,
      newest.active_from ?? newest.run_id,
    );
    return rows.map(toActiveRun);
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

  /** Newest first, those accepted before a given one. */
  before(runId: string | undefined, limit: number): RunRecord[] {
    const sql = "SELECT * FROM runs WHERE ?1 IS NULL OR run_id < ?1 ORDER BY run_id DESC LIMIT ?2";
    return this.#sql
      .exec<RunRow>(sql, runId ?? null, limit)
      .toArray()
      .map(toRecord);
  }

  /** The newest runs that started, newest first, with their base checkpoints; `null` for one that started an empty thread. */
  newestBases(limit: number): { readonly runId: string; readonly base: string | null }[] {
    const rows = this.#sql.exec<{ run_id: string; base_checkpoint_id: string | null }>(
      "SELECT run_id, base_checkpoint_id FROM runs WHERE attempt > 0 ORDER BY run_id DESC LIMIT ?",
      limit,
    );
    return rows.toArray().map((row) => ({ runId: row.run_id, base: row.base_checkpoint_id }));
  }

  /** What each run that has ended used, by run; rows that say nothing are left out. */
  usages(): Map<string, readonly CallerUsage[]> {
    const rows = this.#sql.exec<{ run_id: string; usage: string }>(
      "SELECT run_id, usage FROM runs WHERE usage IS NOT NULL",
    );
    const usages = new Map<string, readonly CallerUsage[]>();
    for (const { run_id, usage } of rows) usages.set(run_id, JSON.parse(usage) as CallerUsage[]);
    return usages;
  }

  delete(runId: string): void {
    this.#sql.exec("DELETE FROM runs WHERE run_id = ?", runId);
  }

  #first(query: string): RunRecord | undefined {
    const [row] = rowsOf<RunRow>(this.#sql, query);
    return row === undefined ? undefined : toRecord(row);
  }
}

function toActiveRun(row: DecisionRow): ActiveRun {
  const cancel = row.cancel === null ? undefined : (JSON.parse(row.cancel) as RunCancelRequest);
  return {
    runId: row.run_id,
    status: row.status as RunStatus,
    cancelAction: cancel?.action ?? (row.cancel_requested === 1 ? "interrupt" : undefined),
    dueAt: row.due_at ?? undefined,
  };
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
    ...(row.active_from === null ? {} : { activeFrom: row.active_from }),
    ...(row.due_at === null ? {} : { dueAt: row.due_at }),
    ...(row.cancel === null ? {} : { cancel: JSON.parse(row.cancel) as RunCancelRequest }),
    ...(row.base_extras === null ? {} : { baseExtras: JSON.parse(row.base_extras) as RunBaseExtras }),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
