/** A deletion that dies at each of its steps: the next wake of the same storage finishes it, whoever wakes it. */
import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { D1BatchRepository } from "../../../src/platform/d1/batch-repository.ts";
import { hasSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { completed, wake as batchWake } from "../../support/batches.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { threadRows } from "../../support/owned-rows.ts";
import { startRun, type ThreadWakes, tomorrow, withWakes } from "../../support/thread-wakes.ts";

/** More than a deletion asks; a loop that never gets through fails instead of going on. */
const STEPS_MAX = 60;

/** D1 that does n batches of statements and is gone before it could answer the last one. What a crash leaves. */
function dyingDb(steps: number): { db: D1Database; died: () => boolean } {
  let left = steps;
  let dead = steps === 0;
  const db = new Proxy(env.DB, {
    get(target, name) {
      if (name === "prepare") {
        return (sql: string) => {
          if (dead) throw new Error("killed");
          return target.prepare(sql);
        };
      }
      if (name !== "batch") return Reflect.get(target, name) as unknown;
      return async (statements: D1PreparedStatement[]) => {
        if (dead) throw new Error("killed");
        left -= 1;
        const results = await target.batch(statements);
        if (left > 0) return results;
        dead = true;
        throw new Error("killed");
      };
    },
  });
  return { db, died: () => dead };
}

/** A thread with a run that ended, a batch of two items and a checkpoint; gives the batch's id. */
async function fill(thread: ThreadWakes): Promise<string> {
  const runtime = await thread.create();
  const { runId } = await startRun(runtime, "@ say done");
  await runtime.context.live.get(runId)!.done;
  const items = [
    { key: "a", prompt: "@ say a" },
    { key: "b", prompt: "@ say b" },
  ];
  const body = { title: "Two", subagent_type: "general-purpose", items } as never;
  const submitted = await runtime.batches.create(body, { submissionKey: "k", role: "user" });
  if (!submitted.ok) throw new Error(submitted.error.message);
  await runtime.context.flush.flush();
  return submitted.value.batch.batch_id;
}

async function leftOf(thread: ThreadWakes, batchId: string): Promise<unknown> {
  const { thread_fences: _fence, ...rows } = await threadRows("alice", thread.threadId, [batchId]);
  return { rows, schema: hasSchema(thread.storage), alarm: await thread.storage.getAlarm() };
}

const NOTHING = { rows: {}, schema: false, alarm: null };

/** Whether there was a write to die at; either way nothing of the thread is left. */
async function diesAt(step: number): Promise<boolean> {
  let died = false;
  await withWakes(async (thread) => {
    const batchId = await fill(thread);
    const dying = dyingDb(step);
    const first = await thread.wake({ db: dying.db });
    died = await first.deletion.run().then(
      () => false,
      () => true,
    );
    expect(died).toBe(dying.died());
    if (died) {
      expect(first.threads.exists()).toBe(false);
      expect(await thread.storage.getAlarm()).not.toBeNull();
      const second = await thread.wake();
      expect(second.deletion.isDone).toBe(true);
    }
    expect(await leftOf(thread, batchId)).toEqual(NOTHING);
  });
  return died;
}

describe("a deletion that dies", () => {
  it("before or behind any of its writes to D1 is finished by the next wake, and meanwhile the thread is gone", async () => {
    let steps = 0;
    while (await diesAt(steps)) {
      steps += 1;
      expect(steps).toBeLessThan(STEPS_MAX);
    }
    // Cancel, submissions, the rows of the thread, its events and each table of a batch.
    expect(steps).toBeGreaterThan(10);
  });

  it("is finished by the alarm, though D1 stays away for two of them; then there is no alarm", async () => {
    await withWakes(async (thread) => {
      const batchId = await fill(thread);
      const gone = dyingDb(0);
      const first = await thread.wake({ db: gone.db });
      await expect(first.deletion.run()).rejects.toThrow("killed");
      const still = await thread.wake({ db: dyingDb(0).db });
      await thread.storage.deleteAlarm();
      await still.onAlarm();
      expect(still.deletion.isDone).toBe(false);
      expect(await thread.storage.getAlarm()).not.toBeNull();
      const back = thread.sleeping();
      await back.onAlarm();
      expect(await leftOf(thread, batchId)).toEqual(NOTHING);
      await back.onAlarm();
      expect(await thread.storage.getAlarm()).toBeNull();
    });
  });

  it("before it ended a run: the next wake asks no tool for it", async () => {
    await withWakes(async (thread) => {
      const started: string[] = [];
      const hangs = plainTool("hang", () => {
        started.push("first");
        return new Promise<never>(() => undefined);
      });
      const first = await thread.create({ tools: [hangs] });
      await startRun(first, "@ call hang {}\n@ say never");
      await eventually(
        () => started.length,
        (count) => count === 1,
      );
      // What a crash behind the first write leaves.
      first.context.threads.markDeleting(Date.now());
      const again = plainTool("hang", async () => {
        started.push("second");
        return succeeded("done");
      });
      const second = await thread.wake({ tools: [again] });
      expect(second.deletion.isDone).toBe(true);
      expect(started).toEqual(["first"]);
      expect(await leftOf(thread, "none")).toEqual(NOTHING);
    });
  });
});

describe("a deletion while items of a batch run", () => {
  it("leaves nothing, not even once their consumer settles and beats under its lease", async () => {
    await withWakes(async (thread) => {
      const batchId = await fill(thread);
      const consumer = new D1BatchRepository(env.DB);
      const now = Date.now();
      const wake = batchWake(batchId, { threadId: thread.threadId, to: 2, slots: 2, expiresAt: now + 60_000 });
      const request = { wake, leaseToken: crypto.randomUUID(), now, leaseExpiresAt: now + 60_000 };
      const claim = await consumer.systemClaim(request);
      if (claim.kind !== "claimed") throw new Error(claim.kind);
      expect(claim.items.length).toBe(2);
      const runtime = await thread.wake();
      await runtime.deletion.run();
      expect(await consumer.systemHeartbeat(claim.lease, now + 90_000, now)).toEqual({ kind: "lost" });
      expect(await consumer.systemSettle(claim.lease, [completed(0), completed(1)], now)).toMatchObject({ applied: 0 });
      expect(await consumer.systemClaim({ ...request, wake: { ...wake, grantId: crypto.randomUUID() } })).toMatchObject(
        {
          kind: "empty",
        },
      );
      expect(await leftOf(thread, batchId)).toEqual(NOTHING);
    });
  });
});

it("a deletion that comes to D1 has ended every run: the one at work, and the one behind it that nobody had started", async () => {
  await withWakes(async (thread) => {
    const hangs = plainTool("hang", async (_args, { signal }) => {
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve());
      });
      return succeeded("let go");
    });
    const runtime = await thread.create({ tools: [hangs] });
    const atWork = await startRun(runtime, "@ call hang {}\n@ say never");
    const waits = await startRun(runtime, "@ say never", { multitask_strategy: "enqueue" });
    const joined = runtime.streams.join(waits, { cancelOnDisconnect: false }).text();
    const forget = runtime.context.flush.forgetThread.bind(runtime.context.flush);
    const ends: unknown[] = [];
    runtime.context.flush.forgetThread = async (address) => {
      ends.push(...[atWork, waits].map(({ runId }) => runtime.context.runs.find(runId)));
      // Whoever waits for a run hears of its end while there is a thread to ask.
      expect(JSON.parse(await joined)).not.toHaveProperty("__error__");
      return forget(address);
    };
    await runtime.deletion.run();
    const cancel = { action: "interrupt", reason: "the thread is being deleted" };
    expect(ends).toMatchObject([
      { status: "interrupted", cancel },
      { status: "interrupted", attempt: 0, cancel },
    ]);
  });
});

it("a deletion at the end of the thread's life that dies has an alarm of its own to go on with", async () => {
  await withWakes(async (thread) => {
    const clock = { now: tomorrow() };
    const runtime = await thread.wake({ now: () => clock.now });
    const address = { v: 1, owner: "alice", thread_id: thread.threadId, role: "user" } as const;
    await runtime.threads.create(address, { metadata: {}, if_exists: "raise", ttl: { ttl: 1 } });
    await runtime.arm();
    const endsAt = await thread.storage.getAlarm();
    expect(endsAt).toBe(clock.now + 60_000);
    expect(runtime.isOver()).toBe(false);
    clock.now = endsAt!;
    // It fired: it is gone.
    await thread.storage.deleteAlarm();
    expect(runtime.isOver()).toBe(true);
    runtime.context.flush.forgetThread = () => Promise.reject(new Error("killed"));
    await expect(runtime.deletion.run()).rejects.toThrow("killed");
    expect(await thread.storage.getAlarm()).toBeGreaterThan(clock.now);
    await thread.sleeping({ now: () => clock.now }).onAlarm();
    expect(await leftOf(thread, "none")).toEqual(NOTHING);
  });
});
