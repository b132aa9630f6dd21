import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import { EventFlush } from "../../../src/durable-objects/event-flush.ts";
import { D1RunEventLog } from "../../../src/platform/d1/run-event-log.ts";
import { EventOutbox } from "../../../src/platform/durable-storage/event-outbox.ts";
import { ensureSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { RunStore } from "../../../src/platform/durable-storage/run-store.ts";
import { ThreadStore } from "../../../src/platform/durable-storage/thread-store.ts";
import type { RunEventDraft } from "../../../src/protocol/run-events.ts";
import { inFreshObject } from "../../support/object-storage.ts";

/** The real D1, whose `batch` first does `before`: fails, or lets something happen meanwhile. */
function withBefore(before: () => void): D1Database {
  return new Proxy(env.DB, {
    get: (db, name) => {
      if (name !== "batch") return Reflect.get(db, name).bind(db) as unknown;
      return async (statements: D1PreparedStatement[]) => {
        // As on a network, the answer never comes in the turn of the request.
        await Promise.resolve();
        before();
        return db.batch(statements);
      };
    },
  });
}

function scene(storage: DurableObjectStorage, before: (outbox: EventOutbox) => void, now: () => number = () => 1_000) {
  ensureSchema(storage);
  const threadId = crypto.randomUUID();
  const threads = new ThreadStore(storage.sql);
  threads.save({ owner: "alice", threadId, metadata: {}, createdAt: 0, updatedAt: 0, epoch: 1 });
  const outbox = new EventOutbox(storage.sql);
  const flush = new EventFlush({
    outbox,
    threads,
    runs: new RunStore(storage.sql),
    log: new D1RunEventLog(withBefore(() => before(outbox))),
    fencing: (write) => write({ owner: "alice", threadId: "t", epoch: 1 }),
    lastFencing: (write) => write({ owner: "alice", threadId: "t", epoch: 1 }),
    now,
    onFault: () => {},
  });
  const stored = async (): Promise<number[]> => {
    const statement = env.DB.prepare("SELECT seq FROM run_events WHERE thread_id = ?1 ORDER BY seq");
    return (await statement.bind(threadId).all<{ seq: number }>()).results.map(({ seq }) => seq);
  };
  return { outbox, flush, stored };
}

function draft(content: string): RunEventDraft {
  return { run_id: "run", event_type: "llm.ai.response", category: "message", content, metadata: {} };
}

it("P1: events that D1 refused stay in the outbox, the alarm is told, and the next flush brings them", async () => {
  await inFreshObject(async (storage) => {
    let failures = 1;
    const { outbox, flush, stored } = scene(storage, () => {
      if (failures-- > 0) throw new Error("D1_ERROR: overloaded");
    });
    outbox.append([draft("a"), draft("b")], { now: 0 });
    await expect(flush.flush()).rejects.toThrow("overloaded");
    expect(outbox.pending()?.events.map(({ seq }) => seq)).toEqual([1, 2]);
    expect(flush.nextDueAt()).toBeGreaterThan(1_000);
    await flush.flush();
    expect(await stored()).toEqual([1, 2]);
    expect([outbox.pending(), flush.nextDueAt()]).toEqual([undefined, undefined]);
  });
});

it("a flush that is asked for while one is on its way resolves when its own events are in D1", async () => {
  await inFreshObject(async (storage) => {
    let second: Promise<void> | undefined;
    const { outbox, flush, stored } = scene(storage, (box) => {
      if (second !== undefined) return;
      box.append([draft("b")], { now: 0 });
      second = flush.flush();
    });
    outbox.append([draft("a")], { now: 0 });
    await flush.flush();
    await second;
    expect(await stored()).toEqual([1, 2]);
  });
});

it("a command that was stored does not fail because D1 did: a retry would find it done", async () => {
  await inFreshObject(async (storage) => {
    let failures = 1;
    const { outbox, flush, stored } = scene(storage, () => {
      if (failures-- > 0) throw new Error("D1_ERROR: database is locked");
    });
    outbox.append([draft("a")], { now: 0 });
    await flush.tryFlush();
    expect(flush.nextDueAt()).toBeGreaterThan(1_000);
    await flush.tryFlush();
    expect(await stored()).toEqual([1]);
  });
});

it("P8: each wait for a D1 that stays broken is twice the last one, five minutes at most, also when the object slept", async () => {
  await inFreshObject(async (storage) => {
    let now = 0;
    const broken = () => {
      throw new Error("D1_ERROR: overloaded");
    };
    scene(storage, broken).outbox.append([draft("a")], { now });
    const waits: number[] = [];
    for (let failures = 0; failures < 10; failures += 1) {
      // Another instance each time: it knows of the failures before it only what is stored.
      const { flush } = scene(storage, broken, () => now);
      await flush.tryFlush();
      waits.push((flush.nextDueAt()! - now) / 1_000);
      expect([flush.isDue(flush.nextDueAt()! - 1), flush.isDue(flush.nextDueAt()!)]).toEqual([false, true]);
      now = flush.nextDueAt()!;
    }
    expect(waits).toEqual([5, 5, 10, 20, 40, 80, 160, 300, 300, 300]);
  });
});

it("P8: while a flush is under way its retry is not due, or an alarm would fire again and again beside it", async () => {
  await inFreshObject(async (storage) => {
    let calls = 0;
    const { outbox, flush, stored } = scene(storage, () => {
      calls += 1;
      if (calls === 1) throw new Error("D1_ERROR: overloaded");
    });
    outbox.append([draft("a")], { now: 0 });
    await flush.tryFlush();
    expect(flush.nextDueAt()).toBe(6_000);
    const under = flush.flush();
    expect([flush.isUnderWay, flush.nextDueAt(), flush.isDue(10_000)]).toEqual([true, undefined, false]);
    await under;
    expect(await stored()).toEqual([1]);
    expect(flush.nextDueAt()).toBeUndefined();
  });
});
