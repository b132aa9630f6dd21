/**
 * Takes out of D1 what is past its retention: ended runs with their events, and ended batches with their items. Owns what is
 * old enough and the bound of one sweep; the next minute's goes on. Safe to repeat and to be cut at any statement: a run's
 * or a batch's own row goes last.
 *
 * Only rows that nobody writes any more are taken: a run that ended, a batch that is terminal. So no fence is asked.
 */
import { uuidV7Floor } from "../identifiers.ts";
import { deleteBatch } from "./retention-batches.ts";
import { deleteEvents } from "./run-event-log.ts";

/** Runs of one sweep: one to two statements each, far under the 1,000 of a Worker's event. */
export const RETIRED_RUNS_MAX = 100;

/** Batches of one sweep: each is some ten statements, more with its items. */
export const RETIRED_BATCHES_MAX = 10;

const MS_PER_DAY = 86_400_000;

/** Days after the end; null keeps for ever. */
export interface RetentionPolicy {
  readonly run_days: number | null;
  readonly batch_days: number | null;
}

/** Owner by owner, each a look-up by `runs_by_age`: what is young is not read. */
const OLD_RUNS = `
  WITH RECURSIVE owners (owner) AS (
    SELECT min(owner) FROM runs
    UNION ALL
    SELECT (SELECT min(owner) FROM runs WHERE owner > owners.owner) FROM owners WHERE owners.owner IS NOT NULL
  )
  SELECT r.owner, r.thread_id, r.run_id, r.first_seq AS first, r.last_seq AS last
  FROM owners JOIN runs r ON r.owner = owners.owner AND r.created_at < ?1
  WHERE r.updated_at < ?1 AND r.status NOT IN ('pending', 'running') LIMIT ?2`;

/** Ids sort by age, so this walks the old ones only. */
const OLD_BATCHES = `
  SELECT batch_id, owner, thread_id, submission_key FROM batches
  WHERE batch_id < ?1 AND updated_at < ?2 AND status IN ('completed', 'cancelled') ORDER BY batch_id LIMIT ?3`;

const FORGET_SUBMISSION =
  "DELETE FROM batch_submissions WHERE owner = ?1 AND thread_id = ?2 AND submission_key = ?3 AND batch_id = ?4";

interface OldRun {
  readonly owner: string;
  readonly thread_id: string;
  readonly run_id: string;
  readonly first: number;
  readonly last: number;
}

interface OldBatch {
  readonly batch_id: string;
  readonly owner: string;
  readonly thread_id: string;
  readonly submission_key: string | null;
}

/** Answers how many of each were taken. */
export async function systemRetire(
  db: D1Database,
  { run_days, batch_days }: RetentionPolicy,
  now: number,
): Promise<{ readonly runs: number; readonly batches: number }> {
  return {
    runs: run_days === null ? 0 : await retireRuns(db, now - run_days * MS_PER_DAY),
    batches: batch_days === null ? 0 : await retireBatches(db, now - batch_days * MS_PER_DAY),
  };
}

async function retireRuns(db: D1Database, before: number): Promise<number> {
  const old = db.prepare(OLD_RUNS).bind(new Date(before).toISOString(), RETIRED_RUNS_MAX);
  const { results } = await old.all<OldRun>();
  for (const run of results) await deleteEvents(db, run, run);
  const remove = db.prepare("DELETE FROM runs WHERE owner = ?1 AND thread_id = ?2 AND run_id = ?3");
  if (results.length > 0) {
    await db.batch(results.map(({ owner, thread_id, run_id }) => remove.bind(owner, thread_id, run_id)));
  }
  return results.length;
}

async function retireBatches(db: D1Database, before: number): Promise<number> {
  const old = db.prepare(OLD_BATCHES).bind(uuidV7Floor(before), before, RETIRED_BATCHES_MAX);
  const { results } = await old.all<OldBatch>();
  for (const { batch_id, owner, thread_id, submission_key } of results) {
    // First: a submission that comes now makes a new batch instead of being told of one that is going.
    if (submission_key !== null) {
      await db.prepare(FORGET_SUBMISSION).bind(owner, thread_id, submission_key, batch_id).run();
    }
    await deleteBatch(db, batch_id);
  }
  return results.length;
}
