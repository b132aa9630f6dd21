import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import type { RunEvent } from "../../../src/protocol/run-events.ts";
import { D1RunEventLog, type RunProjection, type ThreadProjection } from "../../../src/platform/d1/run-event-log.ts";

const log = new D1RunEventLog(env.DB);
const AT = "2026-01-01T00:00:00.000Z";
let made = 0;
const key = () => ({ owner: "alice", thread_id: `log-${made++}` });

function event(seq: number, over: Partial<RunEvent> = {}): RunEvent {
  const base = {
    seq,
    run_id: "r1",
    event_type: "run.start",
    category: "trace",
    content: { seq },
    metadata: {},
  } as const;
  return { ...base, created_at: AT, ...over };
}

const run = (over: Partial<RunProjection> = {}): RunProjection => ({
  run_id: "r1",
  assistant_id: "a",
  status: "running",
  metadata: {},
  error: null,
  created_at: AT,
  updated_at: AT,
  ...over,
});

const thread = (over: Partial<ThreadProjection> = {}): ThreadProjection => ({
  created_at: AT,
  updated_at: AT,
  status: "busy",
  metadata: {},
  ...over,
});

async function rows<T>(sql: string, threadId: string): Promise<T[]> {
  return (await env.DB.prepare(`${sql} WHERE owner = 'alice' AND thread_id = ?`).bind(threadId).all<T>()).results;
}

it("P1: a flush repeated after a crash writes no event twice and changes none", async () => {
  const at = key();
  await log.flush(at, { epoch: 0, events: [event(1), event(2)] });
  await log.flush(at, { epoch: 0, events: [event(2, { content: "another" }), event(3)] });
  const stored = await rows<{ seq: number; content: string }>("SELECT seq, content FROM run_events", at.thread_id);
  expect(stored).toEqual([
    { seq: 1, content: '{"seq":1}' },
    { seq: 2, content: '{"seq":2}' },
    { seq: 3, content: '{"seq":3}' },
  ]);
});

it("P3: a retired instance's projection is refused once a later epoch wrote, for thread and run", async () => {
  const at = key();
  await log.flush(at, { epoch: 2, events: [], thread: thread({ status: "idle" }), runs: [run({ status: "success" })] });
  await log.flush(at, { epoch: 1, events: [], thread: thread({ status: "busy" }), runs: [run({ status: "running" })] });
  expect(await rows("SELECT status, epoch FROM threads", at.thread_id)).toEqual([{ status: "idle", epoch: 2 }]);
  expect(await rows("SELECT status, epoch FROM runs", at.thread_id)).toEqual([{ status: "success", epoch: 2 }]);
  await log.flush(at, { epoch: 2, events: [], thread: thread({ status: "error" }) });
  expect(await rows("SELECT status FROM threads", at.thread_id)).toEqual([{ status: "error" }]);
});

it("R121: a run's bounds cover its events, also those of a flush that carries no projection of the run", async () => {
  const at = key();
  await log.flush(at, { epoch: 1, events: [event(4), event(5)], runs: [run()] });
  expect(await rows("SELECT first_seq, last_seq FROM runs", at.thread_id)).toEqual([{ first_seq: 4, last_seq: 5 }]);
  await log.flush(at, { epoch: 0, events: [event(6), event(9)] });
  expect(await rows("SELECT first_seq, last_seq FROM runs", at.thread_id)).toEqual([{ first_seq: 4, last_seq: 9 }]);
  await log.flush(at, { epoch: 1, events: [], runs: [run({ status: "success" })] });
  expect(await rows("SELECT first_seq, last_seq FROM runs", at.thread_id)).toEqual([{ first_seq: 4, last_seq: 9 }]);
});

it("bills one row an event and one a projection, and one for a new run's place by age", async () => {
  const at = key();
  await log.flush(at, { epoch: 1, events: [], thread: thread() });
  const again = await log.flush(at, {
    epoch: 1,
    events: [event(1), event(2), event(3)],
    thread: thread({ status: "idle" }),
    runs: [run()],
  });
  expect(again.rows_written).toBe(6);
  const ended = await log.flush(at, { epoch: 1, events: [], runs: [run({ status: "success" })] });
  expect(ended.rows_written).toBe(1);
});

it("P8: an event too large for a row is cut and flagged, and those behind it still arrive", async () => {
  const at = key();
  const events = [
    event(1, { content: "x".repeat(3_000_000), metadata: { task_id: "call_1" } }),
    ...Array.from({ length: 4 }, (_, index) => event(index + 2, { content: "y".repeat(600_000) })),
  ];
  await log.flush(at, { epoch: 0, events });
  const stored = await rows<{ seq: number; size: number; metadata: string }>(
    "SELECT seq, length(content) AS size, metadata FROM run_events",
    at.thread_id,
  );
  expect(stored.map((row) => row.size)).toEqual([10_000 + 2 + 1, 600_002, 600_002, 600_002, 600_002]);
  expect(JSON.parse(stored[0]?.metadata ?? "")).toMatchObject({ task_id: "call_1", content_truncated: true });
});

it("stores content that SQLite's JSON parser would refuse: 2,000 levels deep, NULs, lone surrogates", async () => {
  const at = key();
  let deep: unknown = "\u0000\ud800";
  for (let level = 0; level < 2_000; level++) deep = [deep];
  await log.flush(at, { epoch: 0, events: [event(1, { content: deep })] });
  const [stored] = await rows<{ content: string }>("SELECT content FROM run_events", at.thread_id);
  expect(JSON.parse(stored?.content ?? "")).toEqual(deep);
});

it("deletes a thread's rows and no others", async () => {
  const [gone, kept] = [key(), key()];
  for (const at of [gone, kept]) {
    await log.flush(at, { epoch: 1, events: [event(1)], thread: thread(), runs: [run()] });
  }
  await log.deleteThread(gone, { epoch: 1, now: 0 });
  for (const table of ["threads", "runs", "run_events"]) {
    expect(await rows(`SELECT 1 AS one FROM ${table}`, gone.thread_id)).toEqual([]);
    expect(await rows(`SELECT 1 AS one FROM ${table}`, kept.thread_id)).toEqual([{ one: 1 }]);
  }
});

it("deletes a run's row and events and leaves its neighbours", async () => {
  const at = key();
  const runs = [run(), run({ run_id: "r2" })];
  await log.flush(at, { epoch: 1, events: [event(1), event(2, { run_id: "r2" }), event(3)], runs });
  await log.deleteRun(at, "r1", 1);
  expect(await rows("SELECT seq FROM run_events", at.thread_id)).toEqual([{ seq: 2 }]);
  expect(await rows("SELECT run_id FROM runs", at.thread_id)).toEqual([{ run_id: "r2" }]);
});
