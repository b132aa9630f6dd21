/**
 * What an owner may read of batches. Every statement names the owner, and a batch that is loading does not exist (P7).
 * Pages are bounded by rows and by bytes: D1 answers at most 50 MB and a Worker has 128.
 */
import type { BatchReader, ExportPage, ExportPageQuery, ItemsQuery } from "../../domain/batch/batch-repository.ts";
import type { BatchView, ItemView } from "../../domain/batch/batch.ts";
import {
  BATCH_COLUMNS,
  toBatchView,
  toItemResult,
  toItemView,
  type BatchRow,
  type ItemResultRow,
  type ItemViewRow,
} from "./batch-rows.ts";
import type { ThreadKey } from "./run-event-log.ts";

/** Far below the result bound of D1 even when the last row of a page carries the largest result and outputs. */
const EXPORT_PAGE_BYTES = 4_000_000;
const EXPORT_PAGE_ROWS_MAX = 200;
const LIST_ROWS_MAX = 1_000;

const SELECT_BATCH = `SELECT ${BATCH_COLUMNS} FROM batches WHERE batch_id = ?1 AND owner = ?2 AND status <> 'loading'`;

const LIST_OF_THREAD = `SELECT ${BATCH_COLUMNS} FROM batches
  WHERE owner = ?1 AND thread_id = ?2 AND batch_id > ?3 AND status <> 'loading' ORDER BY batch_id LIMIT ?4`;

const LIST_ITEMS = `
  SELECT ordinal, item_key, status, attempts, deferrals, substr(result, 1, ?5) AS preview, error
  FROM batch_items WHERE batch_id = ?1 AND ordinal > ?2 AND (?3 IS NULL OR status = ?3)
  ORDER BY ordinal LIMIT ?4`;

// The row that crosses the byte bound is still in, so that a page is never empty while items are left.
const EXPORT = `
  WITH page AS (
    SELECT i.ordinal, i.item_key, i.status, i.result, i.error, i.attempts, i.deferrals, i.usage, o.outputs,
      coalesce(octet_length(i.result), 0) + coalesce(octet_length(o.outputs), 0) AS bytes
    FROM batch_items i LEFT JOIN batch_outputs o ON o.batch_id = i.batch_id AND o.ordinal = i.ordinal
    WHERE i.batch_id = ?1 AND i.ordinal > ?2 AND i.status IN ('completed', 'failed', 'cancelled')
    ORDER BY i.ordinal LIMIT ?3
  ), measured AS (
    SELECT page.*, count(*) OVER () AS page_rows,
      coalesce(sum(bytes) OVER (ORDER BY ordinal ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
    FROM page
  )
  SELECT * FROM measured WHERE bytes_before < ?4 ORDER BY ordinal`;

type ExportRow = ItemResultRow & { readonly page_rows: number };

export class BatchReads implements BatchReader {
  readonly #db: D1Database;

  constructor(db: D1Database) {
    this.#db = db;
  }

  async getBatch(owner: string, batchId: string): Promise<BatchView | undefined> {
    const { results } = await this.#batch(owner, batchId).all<BatchRow>();
    return results[0] === undefined ? undefined : toBatchView(results[0]);
  }

  /** A thread's batches by id, from behind `after`. */
  async listOfThread(key: ThreadKey, after: string, limit: number): Promise<readonly BatchView[]> {
    const { owner, thread_id: threadId } = key;
    const { results } = await this.#db.prepare(LIST_OF_THREAD).bind(owner, threadId, after, limit).all<BatchRow>();
    return results.map(toBatchView);
  }

  async listItems(owner: string, batchId: string, query: ItemsQuery): Promise<readonly ItemView[] | undefined> {
    const limit = Math.min(Math.max(0, query.limit), LIST_ROWS_MAX);
    const [batch, items] = await this.#db.batch([
      this.#batch(owner, batchId),
      this.#db.prepare(LIST_ITEMS).bind(batchId, query.afterOrdinal, query.status ?? null, limit, query.previewChars),
    ]);
    if (batch?.results[0] === undefined) return undefined;
    return ((items?.results ?? []) as ItemViewRow[]).map(toItemView);
  }

  async exportPage(owner: string, batchId: string, page: ExportPageQuery): Promise<ExportPage | undefined> {
    const limit = Math.min(Math.max(1, page.limit), EXPORT_PAGE_ROWS_MAX);
    const [batch, items] = await this.#db.batch([
      this.#batch(owner, batchId),
      this.#db.prepare(EXPORT).bind(batchId, page.afterOrdinal, limit, EXPORT_PAGE_BYTES),
    ]);
    if (batch?.results[0] === undefined) return undefined;
    const rows = (items?.results ?? []) as ExportRow[];
    const last = rows.at(-1);
    const isWhole = last === undefined || (last.page_rows === rows.length && rows.length < limit);
    return { items: rows.map(toItemResult), nextAfter: isWhole ? null : last.ordinal };
  }

  #batch(owner: string, batchId: string): D1PreparedStatement {
    return this.#db.prepare(SELECT_BATCH).bind(batchId, owner);
  }
}
