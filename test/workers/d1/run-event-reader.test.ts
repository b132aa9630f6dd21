import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import { listMessagesQuerySchema, listRunEventsQuerySchema, type RunEvent } from "../../../src/protocol/run-events.ts";
import { D1RunEventLog, type RunProjection } from "../../../src/platform/d1/run-event-log.ts";
import { D1RunEventReader, EVENT_PAGE_BYTES_MAX } from "../../../src/platform/d1/run-event-reader.ts";
import { newUuidV7 } from "../../../src/platform/identifiers.ts";

const log = new D1RunEventLog(env.DB);
const reader = new D1RunEventReader(env.DB);
const AT = "2026-01-01T00:00:00.000Z";
let made = 0;
const key = () => ({ owner: "alice", thread_id: `events-${made++}` });
const query = (over: object = {}) => listRunEventsQuerySchema.parse(over);
const feed = (over: object = {}) => listMessagesQuerySchema.parse(over);

function step(seq: number, task: string, over: Partial<RunEvent> = {}): RunEvent {
  const base = { run_id: "r1", event_type: "subagent.step", category: "subagent", content: { seq } } as const;
  return { ...base, seq, metadata: { task_id: task }, created_at: AT, ...over };
}

function message(seq: number, over: Partial<RunEvent> = {}): RunEvent {
  return step(seq, "", { event_type: "llm.ai.response", category: "message", metadata: {}, ...over });
}

function run(run_id = "r1"): RunProjection {
  const base = { assistant_id: "a", status: "running", metadata: {}, error: null } as const;
  return { run_id, ...base, created_at: AT, updated_at: AT };
}

/** The real database, remembering each statement with its values, to ask for the plan that it ran with. */
function explaining() {
  const statements: { text: string; values: unknown[] }[] = [];
  const prepare = (text: string): D1PreparedStatement => {
    const statement = env.DB.prepare(text);
    const bind = (...values: unknown[]) => {
      statements.push({ text, values });
      return statement.bind(...values);
    };
    return Object.assign(Object.create(statement) as D1PreparedStatement, { bind });
  };
  const plans = () =>
    Promise.all(
      statements.map(async ({ text, values }) => {
        const plan = env.DB.prepare(`EXPLAIN QUERY PLAN ${text}`).bind(...values);
        return (await plan.all<{ detail: string }>()).results.map((row) => row.detail);
      }),
    );
  return { db: { prepare } as D1Database, plans };
}

const seqs = (page: { rows: { seq: number }[] } | null) => page?.rows.map((row) => row.seq);

it("R120: a chatty sibling never cuts a delegation's tail: the task filter applies before the limit", async () => {
  const at = key();
  const noise = Array.from({ length: 600 }, (_, index) => step(index + 1, "call_loud"));
  const quiet = [step(601, "call_quiet"), step(602, "call_loud"), step(603, "call_quiet")];
  await log.flush(at, { epoch: 1, events: [...noise, ...quiet], runs: [run()] });
  expect(seqs(await reader.listRunEvents(at, "r1", query({ task_id: "call_quiet", limit: "2" })))).toEqual([601, 603]);
  const first = await reader.listRunEvents(at, "r1", query({ task_id: "call_loud" }));
  expect(first?.rows.length).toBe(500);
  expect(first?.next).toBe(500);
  const rest = await reader.listRunEvents(at, "r1", query({ task_id: "call_loud", after_seq: "500" }));
  expect(rest?.rows.at(-1)?.seq).toBe(602);
  expect(rest?.next).toBe(null);
});

it("R121: the task filter walks the primary key within the run's bounds and reads no row of another run", async () => {
  const at = key();
  const other = Array.from({ length: 300 }, (_, index) => step(index + 1, "call_1", { run_id: "r0" }));
  await log.flush(at, { epoch: 1, events: [...other, step(301, "call_1")], runs: [run("r0"), run()] });
  const { db, plans } = explaining();
  expect(seqs(await new D1RunEventReader(db).listRunEvents(at, "r1", query({ task_id: "call_1" })))).toEqual([301]);
  const onEvents = (await plans()).flat().filter((step) => step.includes("run_events"));
  expect(onEvents.length).toBeGreaterThan(0);
  for (const step of onEvents) {
    expect(step).toMatch(/PRIMARY KEY \(owner=\? AND thread_id=\? AND seq(>\? AND seq<\?|=\?)\)/);
  }
});

it("filters by type, goes on behind a cursor and answers an unknown or foreign run with null (P7)", async () => {
  const at = key();
  const events = [step(1, "c", { event_type: "subagent.start" }), step(2, "c"), message(3), step(4, "c")];
  await log.flush(at, { epoch: 1, events, runs: [run()] });
  expect(seqs(await reader.listRunEvents(at, "r1", query()))).toEqual([1, 2, 3, 4]);
  expect(seqs(await reader.listRunEvents(at, "r1", query({ event_types: "subagent.start, llm.ai.response" })))).toEqual(
    [1, 3],
  );
  expect(seqs(await reader.listRunEvents(at, "r1", query({ after_seq: "2" })))).toEqual([3, 4]);
  expect(await reader.listRunEvents(at, "r2", query())).toBe(null);
  expect(await reader.listRunEvents({ ...at, owner: "bob" }, "r1", query())).toBe(null);
});

it("R119: the message feed holds messages only; no cursor means the latest, both cursors ascend", async () => {
  const at = key();
  const events = Array.from({ length: 9 }, (_, index) => (index % 3 === 1 ? step(index + 1, "c") : message(index + 1)));
  await log.flush(at, { epoch: 1, events, runs: [run()] });
  expect(seqs(await reader.listMessages(at, feed()))).toEqual([1, 3, 4, 6, 7, 9]);
  const latest = await reader.listMessages(at, feed({ limit: "2" }));
  expect([seqs(latest), latest.next]).toEqual([[7, 9], 7]);
  const older = await reader.listMessages(at, feed({ limit: "2", before_seq: "7" }));
  expect([seqs(older), older.next]).toEqual([[4, 6], 4]);
  const newer = await reader.listMessages(at, feed({ limit: "3", after_seq: "1" }));
  expect([seqs(newer), newer.next]).toEqual([[3, 4, 6], 6]);
  expect(seqs(await reader.listMessages({ ...at, owner: "bob" }, feed()))).toEqual([]);
});

it("P8: a page ends at its byte bound and its cursor leads on to the last row", async () => {
  const at = key();
  const size = 800_000;
  const events = Array.from({ length: 12 }, (_, index) => message(index + 1, { content: "x".repeat(size) }));
  await log.flush(at, { epoch: 1, events, runs: [run()] });
  const first = await reader.listRunEvents(at, "r1", query());
  expect(first?.rows.length).toBe(Math.ceil(EVENT_PAGE_BYTES_MAX / (size + 4)));
  const rest = await reader.listRunEvents(at, "r1", query({ after_seq: String(first?.next) }));
  expect([seqs(first), seqs(rest)].flat()).toEqual(events.map((event) => event.seq));
  expect(rest?.next).toBe(null);
});

it("finds a run's thread by the run's id alone, and reads no more for an owner of many runs", async () => {
  const owner = `owner-${crypto.randomUUID()}`;
  const runId = newUuidV7();
  const thread = { metadata: {}, status: "idle", created_at: new Date().toISOString(), updated_at: AT } as const;
  const many = Array.from({ length: 300 }, (_, index) => run(`r${index}`));
  await log.flush({ owner, thread_id: "busy" }, { epoch: 1, thread, events: [], runs: many });
  await log.flush({ owner, thread_id: "asked" }, { epoch: 1, thread, events: [], runs: [run(runId)] });
  expect(await reader.threadOfRun(owner, runId)).toBe("asked");
  expect(await reader.threadOfRun("somebody-else", runId)).toBeNull();
  expect([await reader.threadOfRun(owner, newUuidV7()), await reader.threadOfRun(owner, "r1")]).toEqual([null, null]);
  const { db, plans } = explaining();
  await new D1RunEventReader(db).threadOfRun(owner, runId);
  const steps = (await plans()).flat();
  expect(steps).toContainEqual(expect.stringContaining("threads_by_age (owner=? AND created_at<?)"));
  expect(steps).toContainEqual(expect.stringContaining("(owner=? AND thread_id=? AND run_id=?)"));
  expect(steps.filter((step) => step.includes("TEMP B-TREE"))).toEqual([]);
});
