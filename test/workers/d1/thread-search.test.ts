import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import { D1RunEventLog } from "../../../src/platform/d1/run-event-log.ts";
import { D1ThreadSearch } from "../../../src/platform/d1/thread-search.ts";
import {
  countThreadsBodySchema,
  searchThreadsBodySchema,
  STATELESS_MARK,
  type ThreadStatus,
} from "../../../src/protocol/threads.ts";

const log = new D1RunEventLog(env.DB);
const search = new D1ThreadSearch(env.DB);
let owners = 0;
const owner = () => `searcher-${owners++}`;
const query = (over: object = {}) => searchThreadsBodySchema.parse(over);

interface Seed {
  id: string;
  metadata?: Record<string, unknown>;
  status?: ThreadStatus;
  day?: number;
}

async function seed(by: string, threads: Seed[]): Promise<void> {
  for (const [index, { id, metadata = {}, status = "idle", day = index + 1 }] of threads.entries()) {
    const at = `2026-01-${String(day).padStart(2, "0")}T00:00:00.000Z`;
    const thread = { created_at: at, updated_at: at, status, metadata };
    await log.flush({ owner: by, thread_id: id }, { epoch: 1, events: [], thread });
  }
}

async function ids(by: string, over: object = {}): Promise<string[]> {
  return (await search.search(by, query(over))).threads.map((thread) => thread.thread_id);
}

it("orders by creation, newest first, and pages with offset and a total", async () => {
  const by = owner();
  await seed(by, [{ id: "a" }, { id: "b" }, { id: "c" }]);
  expect(await ids(by)).toEqual(["c", "b", "a"]);
  expect(await ids(by, { sort_order: "asc", limit: 2 })).toEqual(["a", "b"]);
  expect(await search.search(by, query({ limit: 1, offset: 1 }))).toMatchObject({
    threads: [{ thread_id: "b", values: null, interrupts: {}, status: "idle" }],
    total: 3,
  });
});

it("keeps pages of equal sort keys apart: no thread twice, none missing", async () => {
  const by = owner();
  await seed(
    by,
    ["e", "d", "c", "b", "a"].map((id) => ({ id, day: 1 })),
  );
  const pages = [await ids(by, { limit: 2 }), await ids(by, { limit: 2, offset: 2 }), await ids(by, { offset: 4 })];
  expect(pages.flat()).toEqual(["e", "d", "c", "b", "a"]);
});

it("P7: an owner finds and counts only their own threads, also by id", async () => {
  const [mine, theirs] = [owner(), owner()];
  await seed(mine, [{ id: "same" }]);
  await seed(theirs, [{ id: "same" }, { id: "other" }]);
  expect(await ids(mine)).toEqual(["same"]);
  expect(await ids(mine, { ids: ["other"] })).toEqual([]);
  expect(await search.count(mine, {})).toBe(1);
});

it("filters by status and by a thousand ids in one parameter", async () => {
  const by = owner();
  await seed(by, [{ id: "t0" }, { id: "t1", status: "busy" }, { id: "t999" }]);
  expect(await ids(by, { status: "busy" })).toEqual(["t1"]);
  expect(await search.count(by, { status: "idle" })).toBe(2);
  const many = Array.from({ length: 1_000 }, (_, index) => `t${index}`);
  expect(await ids(by, { ids: many, sort_order: "asc" })).toEqual(["t0", "t1", "t999"]);
  expect(await ids(by, { ids: [] })).toEqual([]);
});

it.each([
  [{ a: 1 }, true],
  [{ a: "1" }, false],
  [{ a: true }, false],
  [{ nested: { deep: { x: null } } }, true],
  [{ nested: { deep: { y: null } } }, false],
  [{ nested: {} }, true],
  [{ nested: [] }, false],
  [{ list: ["p", "q"] }, true],
  [{ list: ["q"] }, false],
  [{ 'quote"d': "v" }, true],
  [{ "dot.ted": 2.5 }, true],
  [{ dot: { ted: 2.5 } }, false],
  [{ flag: true, a: 1 }, true],
  [{ flag: false }, false],
  [{ a: 1, missing: 1 }, false],
  [{ text: "x' OR 1=1 --" }, true],
])("metadata %j contained: %s", async (metadata, found) => {
  const by = owner();
  const held = {
    a: 1,
    flag: true,
    nested: { deep: { x: null, z: 1 } },
    list: ["p", "q", "r"],
    'quote"d': "v",
    "dot.ted": 2.5,
    text: "x' OR 1=1 --",
  };
  await seed(by, [{ id: "t", metadata: held }, { id: "bare" }]);
  expect(await ids(by, { metadata })).toEqual(found ? ["t"] : []);
  expect(await search.count(by, { metadata })).toBe(found ? 1 : 0);
});

it("leaves threads of stateless runs out unless the filter names them", async () => {
  const by = owner();
  await seed(by, [{ id: "mine" }, { id: "fresh", metadata: { [STATELESS_MARK]: true } }]);
  expect(await ids(by)).toEqual(["mine"]);
  expect(await search.count(by, {})).toBe(1);
  expect(await ids(by, { metadata: { [STATELESS_MARK]: true } })).toEqual(["fresh"]);
});

it("finds by time: after and before are exclusive, an offset is understood, and counts agree", async () => {
  const by = owner();
  await seed(by, [{ id: "a" }, { id: "b" }, { id: "c" }, { id: "d" }]);
  const day = (n: number) => `2026-01-0${n}T00:00:00.000Z`;
  expect(await ids(by, { created_after: day(1), created_before: day(4) })).toEqual(["c", "b"]);
  expect(await ids(by, { updated_after: day(2), sort_by: "updated_at", sort_order: "asc" })).toEqual(["c", "d"]);
  expect(await ids(by, { updated_before: "2026-01-02T02:00:00+02:00" })).toEqual(["a"]);
  expect(await search.count(by, countThreadsBodySchema.parse({ created_after: day(1), updated_before: day(4) }))).toBe(
    2,
  );
  expect(searchThreadsBodySchema.safeParse({ created_after: "yesterday" }).success).toBe(false);
});

const PLANNED: [string, object][] = [
  ["all", {}],
  ["by status", { status: "idle", sort_by: "status" }],
  ["by metadata", { metadata: { topic: "x" }, sort_by: "updated_at" }],
  ["by ids", { ids: ["a", "b"], sort_by: "thread_id", sort_order: "asc" }],
  ["by time", { created_after: "2026-01-01T00:00:00.000Z", updated_before: "2026-02-01T00:00:00.000Z" }],
];

it.each(PLANNED)("reads no other owner's rows: %s", async (_what, over) => {
  const asked: { sql: string; bindings: unknown[] }[] = [];
  const recording = {
    prepare: (sql: string) => {
      const statement = env.DB.prepare(sql);
      return Object.assign(Object.create(statement) as D1PreparedStatement, {
        bind: (...bindings: unknown[]) => {
          asked.push({ sql, bindings });
          return statement.bind(...bindings);
        },
      });
    },
    batch: (statements: D1PreparedStatement[]) => env.DB.batch(statements),
  } as unknown as D1Database;
  await new D1ThreadSearch(recording).search(owner(), query(over));
  expect(asked.length).toBe(2);
  for (const { sql, bindings } of asked) {
    const plan = await env.DB.prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .bind(...bindings)
      .all<{ detail: string }>();
    const ofThreads = plan.results.map(({ detail }) => detail).filter((detail) => /\bthreads\b/.test(detail));
    expect(ofThreads.length).toBeGreaterThan(0);
    for (const detail of ofThreads) expect(detail).toMatch(/^SEARCH threads USING .*\(owner=\?/);
  }
});
