import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import type { RunEvent } from "../../../src/protocol/run-events.ts";
import { D1BatchRepository } from "../../../src/platform/d1/batch-repository.ts";
import {
  FENCE_OF_DELETED_MS,
  FencedDatabase,
  StaleEpochError,
  systemPurgeFences,
} from "../../../src/platform/d1/fence.ts";
import { D1RunEventLog } from "../../../src/platform/d1/run-event-log.ts";

const OWNER = "fenced";
const log = new D1RunEventLog(env.DB);

const key = (threadId: string) => ({ owner: OWNER, thread_id: threadId });

function event(seq: number): RunEvent {
  return {
    seq,
    run_id: "run",
    event_type: "custom",
    category: "trace",
    content: "told",
    metadata: {},
    created_at: "2026-01-01T00:00:00.000Z",
  } as unknown as RunEvent;
}

const projection = { created_at: "a", updated_at: "b", status: "idle", metadata: {} } as const;

function flush(threadId: string, epoch: number, seq: number) {
  return log.flush(key(threadId), { epoch, events: [event(seq)], thread: projection });
}

function as(threadId: string, epoch: number): FencedDatabase {
  return new FencedDatabase(env.DB, (write) => write({ owner: OWNER, threadId, epoch }));
}

async function rowsOf(table: string, threadId: string): Promise<number> {
  const query = env.DB.prepare(`SELECT count(*) AS n FROM ${table} WHERE owner = ?1 AND thread_id = ?2`);
  return (await query.bind(OWNER, threadId).first<number>("n"))!;
}

async function refusals(threadId: string): Promise<number | null> {
  const query = env.DB.prepare("SELECT refused FROM thread_fences WHERE owner = ?1 AND thread_id = ?2");
  return query.bind(OWNER, threadId).first<number>("refused");
}

function repository(threadId: string, epoch: number): D1BatchRepository {
  return new D1BatchRepository(env.DB, (write) => write({ owner: OWNER, threadId, epoch }));
}

describe("writes of an object that was replaced", () => {
  it("P3: an ordinary flush sets no fence and pays no row for it", async () => {
    const threadId = crypto.randomUUID();
    // Two rows of a new thread, because of its index, and one event.
    expect((await flush(threadId, 1, 1)).rows_written).toBe(3);
    expect(await rowsOf("thread_fences", threadId)).toBe(0);
  });

  it("P3: a deletion of an older epoch than one that flushed changes nothing, and is counted", async () => {
    const threadId = crypto.randomUUID();
    await flush(threadId, 2, 1);
    const stale = log.deleteThread(key(threadId), { epoch: 1, now: 0 });
    await expect(stale).rejects.toThrow(StaleEpochError);
    await expect(log.deleteRun(key(threadId), "run", 1)).rejects.toThrow(StaleEpochError);
    expect([await rowsOf("threads", threadId), await rowsOf("run_events", threadId)]).toEqual([1, 1]);
    expect(await refusals(threadId)).toBe(2);
  });

  it("P3: a run that is removed before D1 ever heard of it is not brought by a flush that was still on its way", async () => {
    const threadId = crypto.randomUUID();
    await log.deleteRun(key(threadId), "run", 2);
    const run = { run_id: "run", assistant_id: "a", status: "running", metadata: {}, error: null } as const;
    const runs = [{ ...run, created_at: "a", updated_at: "b" }];
    const late = log.flush(key(threadId), { epoch: 1, events: [event(1)], thread: projection, runs });
    await expect(late).rejects.toThrow("epoch 2 has written");
    expect([await rowsOf("runs", threadId), await rowsOf("run_events", threadId)]).toEqual([0, 0]);
  });

  it("P3: a flush that comes after the deletion of its thread brings nothing back", async () => {
    const threadId = crypto.randomUUID();
    await flush(threadId, 1, 1);
    await log.deleteThread(key(threadId), { epoch: 2, now: 0 });
    await expect(flush(threadId, 1, 1)).rejects.toThrow("epoch 3 has written");
    expect([await rowsOf("threads", threadId), await rowsOf("run_events", threadId)]).toEqual([0, 0]);
  });

  it("P3: what an older epoch does to batches changes nothing: submit, cancel, sweep, forget", async () => {
    const threadId = crypto.randomUUID();
    const submission = (batchId: string) => ({
      owner: OWNER,
      threadId,
      batchId,
      submissionKey: null,
      bodyHash: "hash",
      definition: {},
      submitterRole: "user" as const,
      files: [],
      now: 1,
      plan: {
        title: "t",
        subagentType: "bash",
        items: [{ key: "a", prompt: "p" }],
        files: [],
        maxLiveItems: 1,
        maxRunningItems: 1,
        maxAttempts: 1,
        timeoutSeconds: 1,
      },
    });
    const [live, early] = [crypto.randomUUID(), crypto.randomUUID()];
    await repository(threadId, 2).submit(submission(live));
    const zombie = repository(threadId, 1);
    await expect(zombie.submit(submission(early))).rejects.toThrow(StaleEpochError);
    await expect(zombie.cancel(OWNER, live, 2)).rejects.toThrow(StaleEpochError);
    await expect(zombie.systemForget(live)).rejects.toThrow(StaleEpochError);
    await expect(zombie.systemDiscardLoading(live)).rejects.toThrow(StaleEpochError);
    await expect(zombie.forgetSubmissions(OWNER, threadId)).rejects.toThrow(StaleEpochError);
    const ranges = [{ from: 0, to: 1, grantId: "g" }];
    await expect(zombie.systemInspect(live, ranges)).rejects.toThrow(StaleEpochError);
    expect(await refusals(threadId)).toBe(6);
    expect(await repository(threadId, 2).getBatch(OWNER, live)).toMatchObject({ status: "running" });
    expect(await repository(threadId, 2).getBatch(OWNER, early)).toBeUndefined();
    // A grant that the zombie looked at is still there to be claimed.
    const closed = env.DB.prepare("SELECT count(*) AS n FROM leases WHERE batch_id = ?1").bind(live);
    expect(await closed.first<number>("n")).toBe(0);
  });

  it("the first write of an epoch costs a row, the next ones none", async () => {
    const threadId = crypto.randomUUID();
    const nothing = () => [env.DB.prepare("DELETE FROM batch_submissions WHERE owner = 'nobody'")];
    const fenceRow = async () => {
      const query = env.DB.prepare("SELECT epoch, refused FROM thread_fences WHERE thread_id = ?1").bind(threadId);
      return query.first<{ epoch: number; refused: number }>();
    };
    await as(threadId, 3).batch(nothing());
    await as(threadId, 3).batch(nothing());
    expect(await fenceRow()).toEqual({ epoch: 3, refused: 0 });
    await as(threadId, 4).batch(nothing());
    await expect(as(threadId, 3).batch(nothing())).rejects.toThrow("epoch 4 has written");
    expect(await fenceRow()).toEqual({ epoch: 4, refused: 1 });
  });

  it("P8: the fence of a deleted thread goes a day later, that of a living one stays", async () => {
    const [gone, living] = [crypto.randomUUID(), crypto.randomUUID()];
    await log.deleteThread(key(gone), { epoch: 1, now: 1_000 });
    await as(living, 1).batch([env.DB.prepare("SELECT 1")]);
    await systemPurgeFences(env.DB, 1_000 + FENCE_OF_DELETED_MS);
    expect(await rowsOf("thread_fences", gone)).toBe(1);
    await systemPurgeFences(env.DB, 1_001 + FENCE_OF_DELETED_MS);
    expect([await rowsOf("thread_fences", gone), await rowsOf("thread_fences", living)]).toEqual([0, 1]);
  });
});
