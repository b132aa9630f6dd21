/**
 * Fences a thread's writes to D1 by its object's epoch (P3): what an object deletes, and what it does to its batches.
 * Owns the `thread_fences` rows. Does not own the epoch, which the object takes from its storage.
 *
 * - A batch of an older epoch than one that wrote changes nothing: its first statement breaks a CHECK, and the batch is
 *   rolled back. The refusal is counted in `refused`.
 * - The first write of an epoch costs one row, the next ones none. Asking alone (`holdFence`) never costs one.
 * - A deleted thread keeps its fence for a day, so that a late flush cannot bring its rows back.
 */

export interface FencedThread {
  readonly owner: string;
  readonly threadId: string;
  /** The writer's. */
  readonly epoch: number;
}

/** What the parts of a repository use of D1, fenced or not. */
export type D1Access = Pick<D1Database, "prepare" | "batch">;

/** An instance's last request ends with the platform's longest, 15 minutes; a day is far past it. */
export const FENCE_OF_DELETED_MS = 86_400_000;

const CHECK_NAME = "epoch_in_order";

const NEWEST = `max(
  coalesce((SELECT epoch FROM threads WHERE owner = ?1 AND thread_id = ?2), 0),
  coalesce((SELECT epoch FROM thread_fences WHERE owner = ?1 AND thread_id = ?2), 0))`;

const TAKE = `
  INSERT INTO thread_fences (owner, thread_id, epoch, deleted_at)
  SELECT ?1, ?2, iif(?3 >= ${NEWEST}, ?5, -1), ?4 WHERE true
  ON CONFLICT (owner, thread_id) DO UPDATE SET epoch = excluded.epoch, deleted_at = excluded.deleted_at
  WHERE excluded.epoch > thread_fences.epoch OR excluded.deleted_at IS NOT thread_fences.deleted_at`;

const HOLD = `
  INSERT INTO thread_fences (owner, thread_id, epoch)
  SELECT owner, thread_id, -1 FROM thread_fences WHERE owner = ?1 AND thread_id = ?2 AND epoch > ?3`;

const COUNT_REFUSAL = `
  INSERT INTO thread_fences (owner, thread_id, epoch, refused) SELECT ?1, ?2, ${NEWEST}, 1 WHERE true
  ON CONFLICT (owner, thread_id) DO UPDATE SET refused = refused + 1
  RETURNING max(epoch, ${NEWEST}) AS newest`;

/** A write of an epoch that another one followed. Nothing of it was stored. */
export class StaleEpochError extends Error {
  override readonly name = "StaleEpochError";
  /** The newest epoch D1 has heard of. */
  readonly newest: number;

  constructor(epoch: number, newest: number) {
    super(`a write of epoch ${epoch} was refused: epoch ${newest} has written`);
    this.newest = newest;
  }
}

/** The statement that comes first: from here on older epochs are refused. */
export function takeFence(db: D1Access, { owner, threadId, epoch }: FencedThread): D1PreparedStatement {
  return db.prepare(TAKE).bind(owner, threadId, epoch, null, epoch);
}

/** The thread is gone: what its own instance still had under way is refused as well, so this fence is one higher. */
export function closeFence(db: D1Access, { owner, threadId, epoch }: FencedThread, now: number): D1PreparedStatement {
  return db.prepare(TAKE).bind(owner, threadId, epoch, now, epoch + 1);
}

/** For the ordinary path: refused behind a later fence, without setting one. */
export function holdFence(db: D1Access, { owner, threadId, epoch }: FencedThread): D1PreparedStatement {
  return db.prepare(HOLD).bind(owner, threadId, epoch);
}

/** One `batch()` whose first statement is a fence's; answers the results of the others. Rejects with `StaleEpochError`. */
export async function batchBehind<T>(
  db: D1Access,
  { fence, thread }: { fence: D1PreparedStatement; thread: FencedThread },
  statements: D1PreparedStatement[],
): Promise<D1Result<T>[]> {
  try {
    const [, ...results] = await db.batch<T>([fence, ...statements]);
    return results;
  } catch (fault) {
    if (!String(fault).includes(CHECK_NAME)) throw fault;
    const { owner, threadId, epoch } = thread;
    const counted = await db.batch<{ newest: number }>([db.prepare(COUNT_REFUSAL).bind(owner, threadId)]);
    throw new StaleEpochError(epoch, counted[0]?.results[0]?.newest ?? epoch);
  }
}

/** Gives a write the epoch to name; called again when that one turns out to be behind a fence (see the object's). */
export type Fencing = <T>(write: (thread: FencedThread) => Promise<T>) => Promise<T>;

/** D1 as one thread's object writes it: every `batch()` stands behind its fence. Reads that are not batched are free. */
export class FencedDatabase implements D1Access {
  readonly #db: D1Access;
  readonly #fencing: Fencing;

  constructor(db: D1Access, fencing: Fencing) {
    this.#db = db;
    this.#fencing = fencing;
  }

  prepare(sql: string): D1PreparedStatement {
    return this.#db.prepare(sql);
  }

  batch<T>(statements: D1PreparedStatement[]): Promise<D1Result<T>[]> {
    return this.#fencing((thread) =>
      batchBehind<T>(this.#db, { fence: takeFence(this.#db, thread), thread }, statements),
    );
  }
}

/** For the cron: fences of threads that were deleted long ago. */
export async function systemPurgeFences(db: D1Database, now: number): Promise<number> {
  const purge = db.prepare("DELETE FROM thread_fences WHERE deleted_at < ?1").bind(now - FENCE_OF_DELETED_MS);
  return (await purge.run()).meta.changes;
}
