/** An owner's runs over all threads, by every filter; each test has an owner of its own. */
import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import { D1RunEventLog } from "../../../src/platform/d1/run-event-log.ts";
import { D1RunSearch } from "../../../src/platform/d1/run-search.ts";
import { searchRunsBodySchema } from "../../../src/protocol/run-search.ts";

const log = new D1RunEventLog(env.DB);
const search = new D1RunSearch(env.DB);
const at = (day: number) => `2026-01-${String(day).padStart(2, "0")}T00:00:00.000Z`;

async function store(owner: string): Promise<void> {
  const runs = [
    { thread: "t1", run_id: "a", assistant_id: "one", status: "success", day: 1, metadata: { tag: { deep: 1 } } },
    { thread: "t2", run_id: "b", assistant_id: "two", status: "error", day: 2, metadata: { tag: { deep: 2 } } },
    { thread: "t1", run_id: "c", assistant_id: "one", status: "running", day: 3, metadata: {} },
  ] as const;
  for (const { thread, day, ...run } of runs) {
    await log.flush(
      { owner, thread_id: thread },
      {
        epoch: 0,
        events: [],
        runs: [
          {
            ...run,
            error: run.status === "error" ? { error: "Error", message: "failed" } : null,
            created_at: at(day),
            updated_at: at(day + 10),
          },
        ],
      },
    );
  }
}

const find = async (owner: string, body: Record<string, unknown> = {}) => {
  const { runs, isMore } = await search.search(owner, searchRunsBodySchema.parse(body));
  return { ids: runs.map(({ run_id }) => run_id).join(""), isMore };
};

it("finds runs by thread, assistant, status, metadata and times, newest first, and of nobody else", async () => {
  const owner = crypto.randomUUID();
  await store(owner);
  await store(crypto.randomUUID());
  const cases: [Record<string, unknown>, string][] = [
    [{}, "cba"],
    [{ sort_order: "asc" }, "abc"],
    [{ thread_id: "t1" }, "ca"],
    [{ assistant_id: "two" }, "b"],
    [{ status: "running" }, "c"],
    [{ metadata: { tag: { deep: 2 } } }, "b"],
    [{ metadata: { tag: {} } }, "ba"],
    [{ created_after: at(1) }, "cb"],
    [{ created_before: at(2) }, "a"],
    [{ updated_after: at(12), updated_before: "2026-01-13T01:00:00+01:00" }, ""],
    [{ updated_after: at(11), updated_before: at(13) }, "b"],
    [{ thread_id: "t1", status: "error" }, ""],
  ];
  for (const [body, ids] of cases) {
    expect([body, (await find(owner, body)).ids]).toEqual([body, ids]);
  }
  const [failed] = (await search.search(owner, searchRunsBodySchema.parse({ status: "error" }))).runs;
  expect(failed).toEqual({
    run_id: "b",
    thread_id: "t2",
    assistant_id: "two",
    created_at: at(2),
    updated_at: at(12),
    status: "error",
    metadata: { tag: { deep: 2 } },
    error: { error: "Error", message: "failed" },
  });
});

it("pages tell whether there is more", async () => {
  const owner = crypto.randomUUID();
  await store(owner);
  expect(await find(owner, { limit: 2 })).toEqual({ ids: "cb", isMore: true });
  expect(await find(owner, { limit: 2, offset: 2 })).toEqual({ ids: "a", isMore: false });
  expect(await find(owner, { limit: 3 })).toEqual({ ids: "cba", isMore: false });
});

it("a page reads its own runs, however many the owner has", async () => {
  const owner = crypto.randomUUID();
  const runs = Array.from({ length: 500 }, (_, place) => ({
    run_id: `r${place}`,
    assistant_id: "a",
    status: "success" as const,
    metadata: {},
    error: null,
    created_at: new Date(Date.parse(at(1)) + place).toISOString(),
    updated_at: at(2),
  }));
  await log.flush({ owner, thread_id: "t" }, { epoch: 0, events: [], runs });
  let read = 0;
  const counting = new Proxy(env.DB, {
    get: (target, name) =>
      name === "prepare"
        ? (sql: string) => counted(target.prepare(sql), (rows) => (read += rows))
        : (Reflect.get(target, name) as unknown),
  });
  const page = await new D1RunSearch(counting).search(owner, searchRunsBodySchema.parse({ limit: 10 }));
  expect(page.runs).toHaveLength(10);
  expect(read).toBeGreaterThan(0);
  expect(read).toBeLessThanOrEqual(22);
});

/** drizzle asks by `raw`, which tells no bill: the same statement is asked again for it. */
function counted(statement: D1PreparedStatement, onRead: (rows: number) => void): D1PreparedStatement {
  return new Proxy(statement, {
    get(target, name) {
      if (name === "bind") return (...values: unknown[]) => counted(target.bind(...values), onRead);
      if (name !== "raw") return Reflect.get(target, name) as unknown;
      return async () => {
        onRead((await target.all()).meta.rows_read);
        return target.raw();
      };
    },
  });
}
