/**
 * What the thread object does to a running batch: cancel it, look at offered ranges, spend expired leases, and what the
 * cron behind it reads. Upholds B4 (cancel is atomic: no item is pending or leased when it returns) and B6.
 * Cancel is the one statement that walks a batch: it has to write every unfinished row.
 */
import type { Inspection, LiveBatch, RangeFinding, RangeQuery } from "../../domain/batch/batch-repository.ts";
import type { BatchView } from "../../domain/batch/batch.ts";
import { decideExpiry } from "../../domain/batch/item-settlement.ts";
import { BATCH_COLUMNS, toBatchView, type BatchRow } from "./batch-rows.ts";
import { settleItems } from "./batch-settle.ts";
import type { D1Access } from "./fence.ts";

const CANCEL_ITEMS = `
  UPDATE batch_items SET status = 'cancelled', lease_token = NULL
  WHERE batch_id = ?1 AND status IN ('pending', 'leased')
    AND EXISTS (SELECT 1 FROM batches WHERE batch_id = ?1 AND owner = ?2 AND status = 'running')`;

const CANCEL_BATCH = `
  UPDATE batches SET status = 'cancelled', cancelled = cancelled + changes(), pending = 0, leased = 0, updated_at = ?3
  WHERE batch_id = ?1 AND owner = ?2 AND status = 'running'`;

const SELECT_OWNED = `SELECT ${BATCH_COLUMNS} FROM batches WHERE batch_id = ?1 AND owner = ?2 AND status <> 'loading'`;
const SELECT_VISIBLE = `SELECT ${BATCH_COLUMNS} FROM batches WHERE batch_id = ?1 AND status <> 'loading'`;

/** `?2` is a list of `[from, to, grant]`. An unclaimed grant gets the lease row that nobody can take any more. */
const CLOSE_GRANTS = `
  INSERT INTO leases (batch_id, grant_id, lease_token, expires_at)
  SELECT ?1, value ->> 2, '', 0 FROM json_each(?2) WHERE true
  ON CONFLICT (batch_id, grant_id) DO NOTHING`;

const FIND_RANGES = `
  SELECT r.key AS place, sum(i.status = 'pending') AS pending, sum(i.status = 'leased') AS leased
  FROM json_each(?2) r CROSS JOIN batch_items i
    ON i.batch_id = ?1 AND i.ordinal >= (r.value ->> 0) AND i.ordinal < (r.value ->> 1)
  GROUP BY r.key`;

const FIND_LEASES = `
  SELECT r.key AS place, l.expires_at FROM json_each(?2) r CROSS JOIN leases l
    ON l.batch_id = ?1 AND l.grant_id = (r.value ->> 2)
  WHERE l.lease_token <> ''`;

const FIND_EXPIRED = `
  SELECT i.ordinal, i.attempts, b.max_attempts, l.lease_token
  FROM leases l CROSS JOIN batches b CROSS JOIN batch_items i
    ON i.batch_id = ?1 AND i.ordinal >= ?3 AND i.ordinal < ?4 AND i.lease_token = l.lease_token
  WHERE l.batch_id = ?1 AND l.grant_id = ?2 AND l.expires_at <= ?5 AND b.batch_id = ?1`;

const FIND_LEASED = `
  SELECT i.ordinal, i.attempts, b.max_attempts, i.lease_token, coalesce(l.expires_at, 0) AS expires_at
  FROM batches b CROSS JOIN batch_items i ON i.batch_id = b.batch_id
    LEFT JOIN leases l ON l.batch_id = i.batch_id AND l.lease_token = i.lease_token
  WHERE b.batch_id = ?1 AND i.status = 'leased'`;

const LIST_STALE = `
  SELECT l.batch_id, l.owner, l.thread_id FROM live_batches l LEFT JOIN batches b ON b.batch_id = l.batch_id
  WHERE l.batch_id > ?2 AND coalesce(b.updated_at, l.created_at) < ?1
  ORDER BY l.batch_id LIMIT ?3`;

interface ExpiredRow {
  readonly ordinal: number;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly lease_token: string;
}

export class BatchSweep {
  readonly #db: D1Access;

  constructor(db: D1Access) {
    this.#db = db;
  }

  async cancel(owner: string, batchId: string, now: number): Promise<BatchView | undefined> {
    const results = await this.#db.batch<BatchRow>([
      this.#db.prepare(CANCEL_ITEMS).bind(batchId, owner),
      this.#db.prepare(CANCEL_BATCH).bind(batchId, owner, now),
      this.#db.prepare(SELECT_OWNED).bind(batchId, owner),
    ]);
    const row = results[2]?.results[0];
    return row === undefined ? undefined : toBatchView(row);
  }

  async inspect(batchId: string, ranges: readonly RangeQuery[]): Promise<Inspection> {
    const asked = JSON.stringify(ranges.map(({ from, to, grantId }) => [from, to, grantId]));
    const [, found, leased, batch] = await this.#db.batch([
      this.#db.prepare(CLOSE_GRANTS).bind(batchId, asked),
      this.#db.prepare(FIND_RANGES).bind(batchId, asked),
      this.#db.prepare(FIND_LEASES).bind(batchId, asked),
      this.#db.prepare(SELECT_VISIBLE).bind(batchId),
    ]);
    const counts = byPlace(found?.results as { place: number; pending: number; leased: number }[]);
    const leases = byPlace(leased?.results as { place: number; expires_at: number }[]);
    const row = batch?.results[0] as BatchRow | undefined;
    return {
      batch: row === undefined ? undefined : toBatchView(row),
      ranges: ranges.map((range, place): RangeFinding => ({
        ...range,
        pending: counts.get(place)?.pending ?? 0,
        leased: counts.get(place)?.leased ?? 0,
        leaseExpiresAt: leases.get(place)?.expires_at,
      })),
    };
  }

  /** Reads, decides, then settles under the dead lease's own token: its holder's late write and this one exclude each other. */
  async expire(batchId: string, range: RangeQuery, now: number): Promise<number> {
    const { results } = await this.#db
      .prepare(FIND_EXPIRED)
      .bind(batchId, range.grantId, range.from, range.to, now)
      .all<ExpiredRow>();
    return this.#spend(batchId, results, now);
  }

  async reclaim(batchId: string, now: number): Promise<number> {
    const { results } = await this.#db.prepare(FIND_LEASED).bind(batchId).all<ExpiredRow & { expires_at: number }>();
    const [dead, live] = [
      results.filter((row) => row.expires_at <= now),
      results.filter((row) => row.expires_at > now),
    ];
    for (const items of Map.groupBy(dead, (row) => row.lease_token).values()) await this.#spend(batchId, items, now);
    return live.length;
  }

  /** Items of one lease. */
  async #spend(batchId: string, items: readonly ExpiredRow[], now: number): Promise<number> {
    const token = items[0]?.lease_token;
    if (token === undefined) return 0;
    const settlements = items.map((row) =>
      decideExpiry({ ordinal: row.ordinal, attempts: row.attempts, maxAttempts: row.max_attempts }),
    );
    return (await settleItems(this.#db, { batchId, token }, settlements, now)).applied;
  }

  async forget(batchId: string): Promise<void> {
    await this.#db.batch([this.#db.prepare("DELETE FROM live_batches WHERE batch_id = ?1").bind(batchId)]);
  }

  async listStale(before: number, afterBatchId: string, limit: number): Promise<readonly LiveBatch[]> {
    const { results } = await this.#db
      .prepare(LIST_STALE)
      .bind(before, afterBatchId, Math.max(0, limit))
      .all<{ batch_id: string; owner: string; thread_id: string }>();
    return results.map((row) => ({ batchId: row.batch_id, owner: row.owner, threadId: row.thread_id }));
  }
}

function byPlace<T extends { place: number }>(rows: readonly T[] | undefined): ReadonlyMap<number, T> {
  return new Map((rows ?? []).map((row) => [row.place, row]));
}
