/**
 * Searches and counts an owner's threads in their D1 projection. Owns no writes. Invariants: every statement names the
 * owner (P7); metadata matches by containment (every node of the filter is at the same place in the thread's
 * metadata); threads of stateless runs are listed only for a filter that asks for them.
 */
import { and, asc, count, desc, eq, sql, type SQL } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import {
  type CountThreadsBody,
  type SearchThreadsBody,
  STATELESS_MARK,
  type Thread,
  type ThreadStatus,
} from "../../protocol/threads.ts";
import { containing, withinTimes } from "./list-filters.ts";
import { threads } from "./schema/threads.ts";

type Filter = Pick<SearchThreadsBody, "ids"> & CountThreadsBody;

const SORT_COLUMNS = {
  thread_id: threads.threadId,
  status: threads.status,
  created_at: threads.createdAt,
  updated_at: threads.updatedAt,
} as const;

export class D1ThreadSearch {
  readonly #db: ReturnType<typeof drizzle>;

  constructor(db: D1Database) {
    this.#db = drizzle(db);
  }

  async search(owner: string, query: SearchThreadsBody): Promise<{ threads: Thread[]; total: number }> {
    const column = SORT_COLUMNS[query.sort_by];
    const direction = query.sort_order === "asc" ? asc : desc;
    const where = matching(owner, query);
    const [rows, counted] = await this.#db.batch([
      this.#db
        .select()
        .from(threads)
        .where(where)
        // The id settles ties, so that pages neither repeat nor skip.
        .orderBy(direction(column), direction(threads.threadId))
        .limit(query.limit)
        .offset(query.offset),
      this.#db.select({ total: count() }).from(threads).where(where),
    ]);
    return { threads: rows.map(toThread), total: counted[0]?.total ?? 0 };
  }

  async count(owner: string, query: CountThreadsBody): Promise<number> {
    const [counted] = await this.#db.select({ total: count() }).from(threads).where(matching(owner, query));
    return counted?.total ?? 0;
  }
}

function matching(owner: string, { metadata, ids, status, ...times }: Filter): SQL | undefined {
  const byMetadata = metadata !== undefined && Object.keys(metadata).length > 0;
  const asksStateless = metadata !== undefined && Object.hasOwn(metadata, STATELESS_MARK);
  return and(
    eq(threads.owner, owner),
    status === undefined ? undefined : eq(threads.status, status),
    ...withinTimes(threads, times),
    // One parameter for all ids: D1 binds at most 100.
    ids === undefined ? undefined : sql`${threads.threadId} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`,
    byMetadata ? containing(threads.metadata, metadata) : undefined,
    asksStateless ? undefined : sql`${threads.metadata} ->> ${`$.${STATELESS_MARK}`} IS NOT 1`,
  );
}

function toThread(row: typeof threads.$inferSelect): Thread {
  return {
    thread_id: row.threadId,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
    metadata: JSON.parse(row.metadata) as Record<string, unknown>,
    status: row.status as ThreadStatus,
    values: null,
    interrupts: {},
  };
}
