/** What is past its retention goes, and nothing else. All of it is older than what any other test stores. */
import { env } from "cloudflare:test";
import { v7 } from "uuid";
import { describe, expect, it } from "vitest";
import { RETIRED_BATCHES_MAX, RETIRED_RUNS_MAX, systemRetire } from "../../../src/platform/d1/retention.ts";
import { D1RunEventLog } from "../../../src/platform/d1/run-event-log.ts";
import { RUN_STATUSES } from "../../../src/protocol/runs.ts";

const NOW = Date.parse("2002-02-01T00:00:00.000Z");
const DAY_MS = 86_400_000;
const daysAgo = (days: number) => NOW - days * DAY_MS;
const log = new D1RunEventLog(env.DB);

interface OldRun {
  readonly runId: string;
  readonly seqs: readonly number[];
  readonly days: number;
  /** When it ended; as it was created by default. */
  readonly endedDays?: number;
  readonly status?: (typeof RUN_STATUSES)[number];
}

async function store(owner: string, threadId: string, runs: readonly OldRun[]): Promise<void> {
  await log.flush(
    { owner, thread_id: threadId },
    {
      epoch: 0,
      events: runs.flatMap(({ runId, seqs, days }) =>
        seqs.map((seq) => ({
          seq,
          run_id: runId,
          event_type: "run.start",
          category: "trace" as const,
          content: {},
          metadata: {},
          created_at: new Date(daysAgo(days)).toISOString(),
        })),
      ),
      runs: runs.map(({ runId, days, endedDays = days, status = "success" }) => ({
        run_id: runId,
        assistant_id: "a",
        status,
        metadata: {},
        error: null,
        created_at: new Date(daysAgo(days)).toISOString(),
        updated_at: new Date(daysAgo(endedDays)).toISOString(),
      })),
    },
  );
}

async function column(sql: string, ...values: unknown[]): Promise<unknown[]> {
  const { results } = await env.DB.prepare(sql)
    .bind(...values)
    .all();
  return results.map((row) => Object.values(row)[0]);
}

const runsOf = (owner: string) => column("SELECT run_id FROM runs WHERE owner = ? ORDER BY run_id", owner);

describe("runs", () => {
  it("that ended before the time go with their own events; younger, later ended and active ones stay", async () => {
    const [one, two] = [crypto.randomUUID(), crypto.randomUUID()];
    await store(one, "t", [
      { runId: "old", seqs: [1, 2, 5], days: 31 },
      { runId: "young", seqs: [4, 6], days: 29 },
      { runId: "long", seqs: [3], days: 40, endedDays: 29 },
    ]);
    await store(
      two,
      "t",
      RUN_STATUSES.map((status, place) => ({ runId: status, seqs: [place + 1], days: 31, status })),
    );
    expect(await systemRetire(env.DB, { run_days: null, batch_days: null }, NOW)).toEqual({ runs: 0, batches: 0 });
    expect(await runsOf(one)).toEqual(["long", "old", "young"]);
    expect(await systemRetire(env.DB, { run_days: 30, batch_days: null }, NOW)).toEqual({ runs: 5, batches: 0 });
    expect(await runsOf(one)).toEqual(["long", "young"]);
    expect(await column("SELECT seq FROM run_events WHERE owner = ? ORDER BY seq", one)).toEqual([3, 4, 6]);
    expect(await runsOf(two)).toEqual(["pending", "running"]);
    expect(await column("SELECT run_id FROM run_events WHERE owner = ? ORDER BY seq", two)).toEqual([
      "pending",
      "running",
    ]);
    expect(await systemRetire(env.DB, { run_days: 30, batch_days: null }, NOW)).toEqual({ runs: 0, batches: 0 });
  });

  it(`go ${RETIRED_RUNS_MAX} at a time`, async () => {
    const owner = crypto.randomUUID();
    const many = Array.from({ length: RETIRED_RUNS_MAX + 1 }, (_, place) => ({
      runId: `r${place}`,
      seqs: [place + 1],
      days: 31,
    }));
    await store(owner, "t", many);
    expect((await systemRetire(env.DB, { run_days: 30, batch_days: null }, NOW)).runs).toBe(RETIRED_RUNS_MAX);
    expect((await systemRetire(env.DB, { run_days: 30, batch_days: null }, NOW)).runs).toBe(1);
    expect(await column("SELECT seq FROM run_events WHERE owner = ?", owner)).toEqual([]);
  });

  it("are looked up by age: no table is walked", async () => {
    const asked: string[] = [];
    const db = new Proxy(env.DB, {
      get: (target, name) =>
        name === "prepare"
          ? (sql: string) => {
              asked.push(sql);
              return target.prepare(sql);
            }
          : (Reflect.get(target, name) as unknown),
    });
    await systemRetire(db, { run_days: 30, batch_days: 30 }, NOW);
    const searches = asked.filter((sql) => sql.includes("LIMIT"));
    expect(searches).toHaveLength(2);
    for (const sql of searches) {
      const values = Array.from({ length: new Set(sql.match(/\?\d/g)).size }, () => 1);
      const plan = await env.DB.prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .bind(...values)
        .all<{ detail: string }>();
      const details = plan.results.map(({ detail }) => detail);
      expect(details.filter((detail) => /^SCAN (runs|r|batches)\b/.test(detail))).toEqual([]);
      expect(details.join("\n")).toMatch(/runs_by_age|PRIMARY KEY|autoindex_batches/);
    }
  });
});

interface OldBatch {
  readonly days: number;
  readonly endedDays?: number;
  readonly status?: "running" | "completed" | "cancelled";
}

async function storeBatch(owner: string, { days, endedDays = days, status = "completed" }: OldBatch): Promise<string> {
  const batchId = v7({ msecs: daysAgo(days) });
  const row: Record<string, unknown> = {
    batch_id: batchId,
    owner,
    thread_id: "t",
    submission_key: `key-${batchId}`,
    status,
    title: "",
    subagent_type: "bash",
    created_at: daysAgo(days),
    updated_at: daysAgo(endedDays),
  };
  const { results } = await env.DB.prepare("PRAGMA table_info(batches)").all<{ name: string; notnull: number }>();
  // Counts and limits of no interest here.
  for (const { name, notnull } of results) if (notnull === 1 && !(name in row)) row[name] = 1;
  const names = Object.keys(row);
  await env.DB.batch([
    env.DB.prepare(`INSERT INTO batches (${names.join()}) VALUES (${names.map(() => "?").join()})`).bind(
      ...Object.values(row),
    ),
    env.DB.prepare(
      "INSERT INTO batch_submissions (owner, thread_id, submission_key, batch_id, body_hash) VALUES (?, 't', ?, ?, '')",
    ).bind(owner, `key-${batchId}`, batchId),
    env.DB.prepare("INSERT INTO batch_outputs (batch_id, ordinal, outputs) VALUES (?, 0, '{}')").bind(batchId),
  ]);
  return batchId;
}

describe("batches", () => {
  it("that ended before the time go with what hangs on them, so their key may be used again; others stay", async () => {
    const owner = crypto.randomUUID();
    const gone = [await storeBatch(owner, { days: 31 }), await storeBatch(owner, { days: 40, status: "cancelled" })];
    const kept = [
      await storeBatch(owner, { days: 31, status: "running" }),
      await storeBatch(owner, { days: 31, endedDays: 29 }),
      await storeBatch(owner, { days: 29 }),
    ].toSorted();
    expect(await systemRetire(env.DB, { run_days: null, batch_days: 30 }, NOW)).toEqual({ runs: 0, batches: 2 });
    for (const table of ["batches", "batch_submissions"]) {
      expect(await column(`SELECT batch_id FROM ${table} WHERE owner = ? ORDER BY batch_id`, owner)).toEqual(kept);
    }
    for (const batchId of gone) {
      expect(await column("SELECT ordinal FROM batch_outputs WHERE batch_id = ?", batchId)).toEqual([]);
    }
    expect(await column("SELECT ordinal FROM batch_outputs WHERE batch_id = ?", kept[0])).toEqual([0]);
  });

  it(`go ${RETIRED_BATCHES_MAX} at a time`, async () => {
    const owner = crypto.randomUUID();
    for (let made = 0; made <= RETIRED_BATCHES_MAX; made += 1) await storeBatch(owner, { days: 31 });
    expect((await systemRetire(env.DB, { run_days: null, batch_days: 30 }, NOW)).batches).toBe(RETIRED_BATCHES_MAX);
    expect((await systemRetire(env.DB, { run_days: null, batch_days: 30 }, NOW)).batches).toBe(1);
  });
});
