/**
 * What an owner has in D1 beside single threads: which threads there are, the assistants, and what no thread's object
 * answers for any more. Bounded statements; everything may be repeated.
 */
import { deleteThreadBatches } from "./retention-batches.ts";
import { deleteEvents } from "./run-event-log.ts";

/** Tables whose key, or an index, begins with owner and thread. */
const THREAD_TABLES = ["runs", "run_events", "batches", "batch_submissions"] as const;

export class D1OwnerRows {
  readonly #db: D1Database;

  constructor(db: D1Database) {
    this.#db = db;
  }

  /** Threads that lists could show, stateless ones too, by id. */
  async threads(owner: string, after: string, limit: number): Promise<string[]> {
    const found = this.#db
      .prepare("SELECT thread_id FROM threads WHERE owner = ?1 AND thread_id > ?2 ORDER BY thread_id LIMIT ?3")
      .bind(owner, after, limit);
    return (await found.all<{ thread_id: string }>()).results.map((row) => row.thread_id);
  }

  async countThreads(owner: string): Promise<number> {
    const count = this.#db.prepare("SELECT count(*) AS n FROM threads WHERE owner = ?1").bind(owner);
    return (await count.first<number>("n")) ?? 0;
  }

  /** Some that have rows and no row of their own: their deletion has begun. */
  async strays(owner: string): Promise<string[]> {
    const firsts = THREAD_TABLES.map((table) =>
      this.#db.prepare(`SELECT thread_id FROM ${table} WHERE owner = ?1 LIMIT 1`).bind(owner),
    );
    const found = await this.#db.batch<{ thread_id: string }>(firsts);
    return [...new Set(found.flatMap(({ results }) => results.map((row) => row.thread_id)))];
  }

  /** For a thread whose object knows of no thread: nothing of it writes any more. */
  async eraseThread(owner: string, threadId: string): Promise<void> {
    await deleteThreadBatches(this.#db, owner, threadId);
    await deleteEvents(
      this.#db,
      { owner, thread_id: threadId },
      { run_id: null, first: 0, last: Number.MAX_SAFE_INTEGER },
    );
    const rows = ["runs", "threads"].map((table) =>
      this.#db.prepare(`DELETE FROM ${table} WHERE owner = ?1 AND thread_id = ?2`).bind(owner, threadId),
    );
    await this.#db.batch(rows);
  }

  /** Answers how many. */
  async eraseAssistants(owner: string): Promise<number> {
    const [assistants] = await this.#db.batch(
      ["assistants", "assistant_versions"].map((table) =>
        this.#db.prepare(`DELETE FROM ${table} WHERE owner = ?1`).bind(owner),
      ),
    );
    return assistants?.meta.changes ?? 0;
  }

  /**
   * Fences guard what was deleted against writes that are still on their way, so they go a day later, as after any deletion
   * (`fence.ts`). Those that no deletion has marked are marked here.
   */
  async closeFences(owner: string, now: number): Promise<void> {
    const close = `UPDATE thread_fences SET deleted_at = ?2 WHERE owner = ?1 AND deleted_at IS NULL AND NOT EXISTS (
      SELECT 1 FROM threads WHERE threads.owner = ?1 AND threads.thread_id = thread_fences.thread_id)`;
    await this.#db.prepare(close).bind(owner, now).run();
  }
}
