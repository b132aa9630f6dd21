/**
 * Reads the run event log. Every query walks the primary key inside the run's bounds (`runs.first_seq..last_seq`), so
 * a delegation's rows need no index of their own (R121), and filters apply before the limit, so no other rows of the
 * run can push a delegation's tail out of its page (R120). A page ends early at its byte bound and says so.
 */
import { and, asc, desc, eq, gt, inArray, lt, lte, sql, type SQL } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import type { ListMessagesQuery, ListRunEventsQuery, RunEventRow } from "../../protocol/run-events.ts";
import type { ThreadKey } from "./run-event-log.ts";
import { timeOfUuidV7 } from "../identifiers.ts";
import { runEvents, runs, threads } from "./schema/threads.ts";

/**
 * Stored bytes of one page, passed by at most its last row: a Worker has 128 MB, and parsed JSON takes several times its
 * text.
 */
export const EVENT_PAGE_BYTES_MAX = 8_388_608;

/** Threads that are looked into for a run whose thread nobody named: two rows read each. */
export const THREADS_SEARCHED_MAX = 1_000;

/** A clock that was set back makes a run's id older than its thread. */
const CLOCK_SLACK_MS = 60_000;

export interface EventPage {
  readonly rows: RunEventRow[];
  /** Cursor of the following page; null when this is the last. */
  readonly next: number | null;
}

type StoredEvent = typeof runEvents.$inferSelect;

export class D1RunEventReader {
  readonly #db: ReturnType<typeof drizzle>;

  constructor(db: D1Database) {
    this.#db = drizzle(db);
  }

  /** Null when the run is unknown to its owner. */
  async listRunEvents(key: ThreadKey, runId: string, query: ListRunEventsQuery): Promise<EventPage | null> {
    const bounds = await this.#boundsOf(key, runId);
    if (bounds === undefined) return null;
    const filters = [
      gt(runEvents.seq, Math.max(query.after_seq, bounds.first - 1)),
      lt(runEvents.seq, bounds.last + 1),
      eq(runEvents.runId, runId),
      query.task_id === undefined ? undefined : sql`${runEvents.metadata} ->> '$.task_id' = ${query.task_id}`,
      query.event_types === undefined ? undefined : inArray(runEvents.eventType, query.event_types),
    ];
    return this.#page(key, { filters, limit: query.limit });
  }

  /**
   * Where a run of the owner's is; null when it is unknown, and until its first flush. No index leads from a run to its
   * thread, because it would cost each run a row: of the owner's threads that were there when the run was made (its id has
   * the time), the newest `THREADS_SEARCHED_MAX` are asked. Whoever has the thread's id asks with it.
   */
  async threadOfRun(owner: string, runId: string): Promise<string | null> {
    const madeAt = timeOfUuidV7(runId);
    if (madeAt === undefined) return null;
    const candidates = this.#db
      .select({ threadId: threads.threadId })
      .from(threads)
      .where(and(eq(threads.owner, owner), lte(threads.createdAt, new Date(madeAt + CLOCK_SLACK_MS).toISOString())))
      .orderBy(desc(threads.createdAt), desc(threads.threadId))
      .limit(THREADS_SEARCHED_MAX)
      .as("candidates");
    const isRun = and(eq(runs.owner, owner), eq(runs.threadId, candidates.threadId), eq(runs.runId, runId));
    const found = this.#db.select({ threadId: runs.threadId }).from(candidates).innerJoin(runs, isRun).limit(1);
    return (await found)[0]?.threadId ?? null;
  }

  /** Messages of one run. Null when it is unknown to its owner. */
  async listRunMessages(key: ThreadKey, runId: string, query: ListMessagesQuery): Promise<EventPage | null> {
    const bounds = await this.#boundsOf(key, runId);
    if (bounds === undefined) return null;
    const first = Math.max((query.after_seq ?? 0) + 1, bounds.first);
    const last = Math.min((query.before_seq ?? Number.MAX_SAFE_INTEGER) - 1, bounds.last);
    const filters = [
      gt(runEvents.seq, first - 1),
      lt(runEvents.seq, last + 1),
      eq(runEvents.runId, runId),
      eq(runEvents.category, "message"),
    ];
    if (query.after_seq !== undefined) return this.#page(key, { filters, limit: query.limit });
    const page = await this.#page(key, { filters, limit: query.limit, newestFirst: true });
    return { ...page, rows: page.rows.reverse() };
  }

  /** Rows of category `message`: steps of delegations are in the log, not in the feed (R119). */
  async listMessages(key: ThreadKey, query: ListMessagesQuery): Promise<EventPage> {
    const isMessage = eq(runEvents.category, "message");
    if (query.after_seq !== undefined) {
      return this.#page(key, { filters: [isMessage, gt(runEvents.seq, query.after_seq)], limit: query.limit });
    }
    const before = query.before_seq === undefined ? undefined : lt(runEvents.seq, query.before_seq);
    const page = await this.#page(key, { filters: [isMessage, before], limit: query.limit, newestFirst: true });
    return { ...page, rows: page.rows.reverse() };
  }

  /** All of the thread's, ascending. */
  listEvents(key: ThreadKey, { after_seq, limit }: { after_seq: number; limit: number }): Promise<EventPage> {
    return this.#page(key, { filters: [gt(runEvents.seq, after_seq)], limit });
  }

  async #boundsOf(key: ThreadKey, runId: string): Promise<{ first: number; last: number } | undefined> {
    const [bounds] = await this.#db
      .select({ first: runs.firstSeq, last: runs.lastSeq })
      .from(runs)
      .where(and(eq(runs.owner, key.owner), eq(runs.threadId, key.thread_id), eq(runs.runId, runId)));
    return bounds;
  }

  /**
   * Sizes are summed before contents are fetched: `octet_length` reads a row's header only, so a page of huge events
   * never leaves the database. One row more than the limit tells whether another page follows.
   */
  async #page(key: ThreadKey, { filters, limit, newestFirst = false }: PageRequest): Promise<EventPage> {
    const inThread = and(eq(runEvents.owner, key.owner), eq(runEvents.threadId, key.thread_id));
    const order = newestFirst ? desc : asc;
    const bytes = sql<number>`octet_length(${runEvents.content}) + octet_length(${runEvents.metadata})`;
    const sized = this.#db.$with("sized").as(
      this.#db
        .select({ seq: sql<number>`${runEvents.seq}`.as("sized_seq"), bytes: bytes.as("bytes") })
        .from(runEvents)
        .where(and(inThread, ...filters))
        .orderBy(order(runEvents.seq))
        .limit(limit + 1),
    );
    const summed = this.#db.$with("summed").as(
      this.#db
        .select({
          seq: sized.seq,
          bytesBefore: sql<number>`sum(${sized.bytes}) OVER (ORDER BY ${order(sized.seq)}) - ${sized.bytes}`.as(
            "bytes_before",
          ),
        })
        .from(sized),
    );
    const found = await this.#db
      .with(sized, summed)
      .select({ event: runEvents, matched: sql<number>`(SELECT count(*) FROM ${sized})` })
      .from(summed)
      .innerJoin(runEvents, and(inThread, eq(runEvents.seq, summed.seq)))
      .where(lt(summed.bytesBefore, EVENT_PAGE_BYTES_MAX))
      .orderBy(order(runEvents.seq))
      .limit(limit);
    const rows = found.map(({ event }) => toRow(key, event));
    const more = rows.length < (found[0]?.matched ?? 0);
    return { rows, next: more ? (rows.at(-1)?.seq ?? null) : null };
  }
}

interface PageRequest {
  readonly filters: readonly (SQL | undefined)[];
  readonly limit: number;
  readonly newestFirst?: boolean;
}

function toRow(key: ThreadKey, event: StoredEvent): RunEventRow {
  return {
    thread_id: key.thread_id,
    run_id: event.runId,
    seq: event.seq,
    event_type: event.eventType,
    category: event.category,
    content: JSON.parse(event.content) as unknown,
    metadata: JSON.parse(event.metadata) as Record<string, unknown>,
    created_at: event.createdAt,
  };
}
