/**
 * The write side of a thread in D1: the run event log and the bounded projections of thread and run rows. Called by the
 * thread object's outbox flush only. Owns no sequence numbers (the object gives them out) and no retry.
 *
 * - One flush is one D1 `batch()`: events and the bounds of their runs become visible together.
 * - Events are idempotent by (owner, thread_id, seq): a flush repeated after a crash writes nothing new.
 * - A projection names the object's epoch; a row written by a later epoch is left alone (P3). What is deleted stays
 *   deleted: a flush or a deletion of an epoch behind the thread's fence changes nothing (`fence.ts`).
 * - `runs.first_seq..last_seq` always covers the run's events, so readers walk the primary key and no other index.
 */
import type { RunEvent } from "../../protocol/run-events.ts";
import type { RunStatus } from "../../protocol/runs.ts";
import type { ThreadStatus } from "../../protocol/threads.ts";
import { encodeEvents } from "./encoded-events.ts";
import { deleteThreadBatches } from "./retention-batches.ts";
import { batchBehind, closeFence, type D1Access, holdFence, takeFence } from "./fence.ts";

export interface ThreadKey {
  readonly owner: string;
  readonly thread_id: string;
}

export interface ThreadProjection {
  readonly created_at: string;
  readonly updated_at: string;
  readonly status: ThreadStatus;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface RunProjection {
  readonly run_id: string;
  readonly assistant_id: string;
  readonly status: RunStatus;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly error: { readonly error: string; readonly message: string } | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** What an object has to tell D1. A run's bounds are taken from `events`; the caller keeps no count of them. */
export interface ThreadFlush {
  /** The object's current wake; guards `thread` and `runs`. */
  readonly epoch: number;
  readonly events: readonly RunEvent[];
  readonly thread?: ThreadProjection;
  readonly runs?: readonly RunProjection[];
}

/** Rows one statement deletes: far under D1's 30 s a statement. */
const DELETE_EVENTS_CHUNK = 5_000;

export interface Deletion {
  /** The object's current wake. */
  readonly epoch: number;
  /** Milliseconds. */
  readonly now: number;
}

type FencedBatch = <T>(statements: D1PreparedStatement[]) => Promise<D1Result<T>[]>;

interface SeqBounds {
  readonly run_id: string;
  readonly first: number;
  readonly last: number;
}

const INSERT_EVENTS = `
  INSERT INTO run_events (owner, thread_id, seq, run_id, event_type, category, content, metadata, created_at)
  SELECT ?1, ?2, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
  FROM json_each(?3) WHERE true
  ON CONFLICT (owner, thread_id, seq) DO NOTHING`;

const WIDEN_BOUNDS = `
  UPDATE runs SET
    first_seq = CASE WHEN runs.first_seq = 0 THEN bounds.value ->> 'first' ELSE min(runs.first_seq, bounds.value ->> 'first') END,
    last_seq = max(runs.last_seq, bounds.value ->> 'last')
  FROM json_each(?3) AS bounds
  WHERE runs.owner = ?1 AND runs.thread_id = ?2 AND runs.run_id = bounds.value ->> 'run_id'`;

const UPSERT_THREAD = `
  INSERT INTO threads (owner, thread_id, epoch, created_at, updated_at, status, metadata)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
  ON CONFLICT (owner, thread_id) DO UPDATE SET
    epoch = excluded.epoch, updated_at = excluded.updated_at, status = excluded.status, metadata = excluded.metadata
  WHERE excluded.epoch >= threads.epoch`;

const UPSERT_RUN = `
  INSERT INTO runs (owner, thread_id, run_id, epoch, assistant_id, status, metadata, error, first_seq, last_seq, created_at, updated_at)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
  ON CONFLICT (owner, thread_id, run_id) DO UPDATE SET
    epoch = excluded.epoch, status = excluded.status, metadata = excluded.metadata, error = excluded.error,
    first_seq = CASE
      WHEN runs.first_seq = 0 THEN excluded.first_seq
      WHEN excluded.first_seq = 0 THEN runs.first_seq
      ELSE min(runs.first_seq, excluded.first_seq) END,
    last_seq = max(runs.last_seq, excluded.last_seq),
    updated_at = excluded.updated_at
  WHERE excluded.epoch >= runs.epoch`;

export class D1RunEventLog {
  readonly #db: D1Database;

  constructor(db: D1Database) {
    this.#db = db;
  }

  /** Everything or nothing; answers what D1 bills for it. Throws D1's error on a fault: the caller keeps its outbox. */
  async flush(key: ThreadKey, flush: ThreadFlush): Promise<{ rows_written: number }> {
    const statements = this.#statements(key, flush);
    if (statements.length === 0) return { rows_written: 0 };
    const thread = { owner: key.owner, threadId: key.thread_id, epoch: flush.epoch };
    const results = await batchBehind(this.#db, { fence: holdFence(this.#db, thread), thread }, statements);
    return { rows_written: results.reduce((sum, result) => sum + (result.meta.rows_written ?? 0), 0) };
  }

  #statements(key: ThreadKey, flush: ThreadFlush): D1PreparedStatement[] {
    const bounds = boundsByRun(flush.events);
    const projected = flush.runs ?? [];
    const unprojected = [...bounds.values()].filter((bound) => !projected.some((run) => run.run_id === bound.run_id));
    const { owner, thread_id } = key;
    return [
      ...(flush.thread === undefined ? [] : [this.#thread(key, flush.epoch, flush.thread)]),
      ...projected.map((run) => this.#run(key, flush.epoch, { run, bounds: bounds.get(run.run_id) })),
      ...encodeEvents(flush.events).map((rows) => this.#db.prepare(INSERT_EVENTS).bind(owner, thread_id, rows)),
      ...(unprojected.length === 0
        ? []
        : [this.#db.prepare(WIDEN_BOUNDS).bind(owner, thread_id, JSON.stringify(unprojected))]),
    ];
  }

  /**
   * Removes every row of the thread: first what lists show, then the log and the batches in bounded statements. Safe to
   * repeat. From the first statement on nothing of this thread's instances gets in; its fence stays.
   */
  async deleteThread(key: ThreadKey, { epoch, now }: Deletion): Promise<void> {
    const { owner, thread_id } = key;
    const thread = { owner, threadId: thread_id, epoch };
    const closed = { ...thread, epoch: epoch + 1 };
    await batchBehind(this.#db, { fence: closeFence(this.#db, thread, now), thread }, [
      this.#db.prepare("DELETE FROM threads WHERE owner = ?1 AND thread_id = ?2").bind(owner, thread_id),
      this.#db.prepare("DELETE FROM runs WHERE owner = ?1 AND thread_id = ?2").bind(owner, thread_id),
    ]);
    const behind = <T>(statements: D1PreparedStatement[]) =>
      batchBehind<T>(this.#db, { fence: holdFence(this.#db, closed), thread: closed }, statements);
    const db = { prepare: (sql: string) => this.#db.prepare(sql), batch: behind };
    await deleteEvents(db, key, { run_id: null, first: 0, last: Number.MAX_SAFE_INTEGER });
    await deleteThreadBatches(db, owner, thread_id);
  }

  /**
   * Removes a run's row and its events. Safe to repeat until the row is gone, which comes last. The fence is taken also
   * when there is no row: an instance that was replaced may have sent it and it is still on its way.
   */
  async deleteRun(key: ThreadKey, runId: string, epoch: number): Promise<void> {
    const { owner, thread_id } = key;
    const fenced = this.#fenced(key, epoch);
    const where = "WHERE owner = ?1 AND thread_id = ?2 AND run_id = ?3";
    const [found] = await fenced<{ first: number; last: number }>([
      this.#db.prepare(`SELECT first_seq AS first, last_seq AS last FROM runs ${where}`).bind(owner, thread_id, runId),
    ]);
    const [row] = found?.results ?? [];
    if (row === undefined) return;
    const db = { prepare: (sql: string) => this.#db.prepare(sql), batch: fenced };
    await deleteEvents(db, key, { run_id: runId, ...row });
    await fenced([this.#db.prepare(`DELETE FROM runs ${where}`).bind(owner, thread_id, runId)]);
  }

  #fenced(key: ThreadKey, epoch: number): FencedBatch {
    const thread = { owner: key.owner, threadId: key.thread_id, epoch };
    return <T>(statements: D1PreparedStatement[]) =>
      batchBehind<T>(this.#db, { fence: takeFence(this.#db, thread), thread }, statements);
  }

  #thread(key: ThreadKey, epoch: number, thread: ThreadProjection): D1PreparedStatement {
    return this.#db
      .prepare(UPSERT_THREAD)
      .bind(
        key.owner,
        key.thread_id,
        epoch,
        thread.created_at,
        thread.updated_at,
        thread.status,
        JSON.stringify(thread.metadata),
      );
  }

  #run(
    key: ThreadKey,
    epoch: number,
    { run, bounds }: { run: RunProjection; bounds: SeqBounds | undefined },
  ): D1PreparedStatement {
    return this.#db
      .prepare(UPSERT_RUN)
      .bind(
        key.owner,
        key.thread_id,
        run.run_id,
        epoch,
        run.assistant_id,
        run.status,
        JSON.stringify(run.metadata),
        run.error === null ? null : JSON.stringify(run.error),
        bounds?.first ?? 0,
        bounds?.last ?? 0,
        run.created_at,
        run.updated_at,
      );
  }
}

/** Of one run, or of the thread, in bounded statements. `db` may stand behind a fence. */
export async function deleteEvents(
  db: D1Access,
  key: ThreadKey,
  range: { readonly run_id: string | null; readonly first: number; readonly last: number },
): Promise<void> {
  const statement = db
    .prepare(
      `DELETE FROM run_events WHERE owner = ?1 AND thread_id = ?2 AND seq IN (
         SELECT seq FROM run_events
         WHERE owner = ?1 AND thread_id = ?2 AND seq BETWEEN ?3 AND ?4 AND (?5 IS NULL OR run_id = ?5) LIMIT ?6)`,
    )
    .bind(key.owner, key.thread_id, range.first, range.last, range.run_id, DELETE_EVENTS_CHUNK);
  let changes = DELETE_EVENTS_CHUNK;
  while (changes === DELETE_EVENTS_CHUNK) changes = (await db.batch([statement]))[0]?.meta.changes ?? 0;
}

function boundsByRun(events: readonly RunEvent[]): Map<string, SeqBounds> {
  const bounds = new Map<string, SeqBounds>();
  for (const { run_id, seq } of events) {
    const known = bounds.get(run_id);
    bounds.set(run_id, {
      run_id,
      first: Math.min(known?.first ?? seq, seq),
      last: Math.max(known?.last ?? seq, seq),
    });
  }
  return bounds;
}
