/**
 * Searches an owner's runs in their D1 projection, over all threads. Owns no writes. Every statement names the owner (P7).
 * Walks `runs_by_age` in the asked order and stops behind the page; without a page's worth of matches it walks all runs
 * of the owner between the given times of creation.
 */
import { and, asc, desc, eq, type SQL } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { FoundRun, SearchRunsBody } from "../../protocol/run-search.ts";
import type { RunStatus } from "../../protocol/runs.ts";
import { containing, withinTimes } from "./list-filters.ts";
import { runs } from "./schema/threads.ts";

export class D1RunSearch {
  readonly #db: ReturnType<typeof drizzle>;

  constructor(db: D1Database) {
    this.#db = drizzle(db);
  }

  /** One page, and whether there is a further one. */
  async search(owner: string, query: SearchRunsBody): Promise<{ runs: FoundRun[]; isMore: boolean }> {
    const direction = query.sort_order === "asc" ? asc : desc;
    const rows = await this.#db
      .select()
      .from(runs)
      .where(matching(owner, query))
      // The id settles ties, so that pages neither repeat nor skip.
      .orderBy(direction(runs.createdAt), direction(runs.runId))
      .limit(query.limit + 1)
      .offset(query.offset);
    return { runs: rows.slice(0, query.limit).map(toFoundRun), isMore: rows.length > query.limit };
  }
}

function matching(owner: string, { thread_id, assistant_id, status, metadata, ...times }: SearchRunsBody) {
  const wanted: (SQL | undefined)[] = [
    eq(runs.owner, owner),
    thread_id === undefined ? undefined : eq(runs.threadId, thread_id),
    assistant_id === undefined ? undefined : eq(runs.assistantId, assistant_id),
    status === undefined ? undefined : eq(runs.status, status),
    ...withinTimes(runs, times),
    metadata === undefined || Object.keys(metadata).length === 0 ? undefined : containing(runs.metadata, metadata),
  ];
  return and(...wanted);
}

function toFoundRun(row: typeof runs.$inferSelect): FoundRun {
  return {
    run_id: row.runId,
    thread_id: row.threadId,
    assistant_id: row.assistantId,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
    status: row.status as RunStatus,
    metadata: JSON.parse(row.metadata) as Record<string, unknown>,
    error: row.error === null ? null : (JSON.parse(row.error) as NonNullable<FoundRun["error"]>),
  };
}
