/**
 * The thread's own row: who owns it, its metadata, the epoch of the object's wakes.
 * Does not own status (derived from the runs) or state (the checkpointer's).
 */
import { rowsOf, type SqlExecutor } from "./metered-sql.ts";

/** Version of the row's shape. PERSISTED. */
const THREAD_ROW_VERSION = 1;

export interface ThreadRecord {
  readonly owner: string;
  readonly threadId: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Count of this object's wakes; what it writes to D1 is refused once a later wake wrote. */
  readonly epoch: number;
}

/** PERSISTED in `ttl`: fields are only added. */
export interface ThreadTtl {
  readonly v: 1;
  readonly minutes: number;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

interface ThreadRow extends Record<string, SqlStorageValue> {
  owner: string;
  thread_id: string;
  metadata: string;
  created_at: number;
  updated_at: number;
  epoch: number;
}

export class ThreadStore {
  readonly #sql: SqlExecutor;

  constructor(sql: SqlExecutor) {
    this.#sql = sql;
  }

  load(): ThreadRecord | undefined {
    const query = "SELECT owner, thread_id, metadata, created_at, updated_at, epoch FROM thread WHERE id = 1";
    const [row] = rowsOf<ThreadRow>(this.#sql, query);
    if (row === undefined) return undefined;
    return {
      owner: row.owner,
      threadId: row.thread_id,
      metadata: JSON.parse(row.metadata) as Record<string, unknown>,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
      epoch: row.epoch,
    };
  }

  /** The newest wake's; 0 without a row. Asks storage each time: who calls wants to know whether this one is still current. */
  epoch(): number {
    return this.#sql.exec<{ epoch: number }>("SELECT epoch FROM thread WHERE id = 1").toArray()[0]?.epoch ?? 0;
  }

  /** True from the moment a deletion was asked for. */
  isDeleting(): boolean {
    const query = "SELECT deleting_since AS since FROM thread WHERE id = 1";
    const [row] = rowsOf<{ since: number | null }>(this.#sql, query);
    return row !== undefined && row.since !== null;
  }

  /** There is no way back. */
  markDeleting(now: number): void {
    this.#sql.exec("UPDATE thread SET deleting_since = ? WHERE id = 1 AND deleting_since IS NULL", now);
  }

  /** `undefined` for a thread that nobody bounded. */
  ttl(): ThreadTtl | undefined {
    const [row] = this.#sql.exec<{ ttl: string | null }>("SELECT ttl FROM thread WHERE id = 1").toArray();
    return row?.ttl == null ? undefined : (JSON.parse(row.ttl) as ThreadTtl);
  }

  saveTtl(ttl: ThreadTtl): void {
    this.#sql.exec("UPDATE thread SET ttl = ? WHERE id = 1", JSON.stringify(ttl));
  }

  save(thread: ThreadRecord): void {
    this.#sql.exec(
      `INSERT INTO thread (id, v, owner, thread_id, metadata, created_at, updated_at, epoch)
       VALUES (1, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET metadata = excluded.metadata, updated_at = excluded.updated_at, epoch = excluded.epoch`,
      THREAD_ROW_VERSION,
      thread.owner,
      thread.threadId,
      JSON.stringify(thread.metadata),
      thread.createdAt,
      thread.updatedAt,
      thread.epoch,
    );
  }
}
