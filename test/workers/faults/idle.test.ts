/** What a thread costs that has nothing to do: its alarms fire as they come due, over a day of the test's clock. */
import { createMessageBatch, env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { systemTimers } from "../../../src/agent/subagents/timers.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { D1BatchRepository } from "../../../src/platform/d1/batch-repository.ts";
import type { BatchWake } from "../../../src/protocol/queue-messages.ts";
import { consumeBatchWakes } from "../../../src/queue-consumers/batch-items.ts";
import { done } from "../../support/batch-thread.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

const DAY_MS = 86_400_000;
const EPOCH_MS = Date.now() + 2 * DAY_MS;

interface Day {
  readonly alarms: number;
  readonly rowsWritten: number;
}

/** Fires every alarm of a day at its time; a loop would show as a count past any bound. A run takes no time. */
async function liveADay(
  thread: ThreadWakes,
  runtime: ThreadRuntime,
  clock: { now: number },
  lengthMs = DAY_MS,
): Promise<Day> {
  const until = clock.now + lengthMs;
  const before = runtime.context.meter.totals().rowsWritten;
  let alarms = 0;
  for (;;) {
    const at = await thread.storage.getAlarm();
    if (at === null || at > until || alarms > 20_000) break;
    clock.now = Math.max(clock.now, at);
    await thread.storage.deleteAlarm();
    alarms += 1;
    await runtime.onAlarm();
    await runtime.context.live.current()?.done;
  }
  clock.now = Math.max(clock.now, until);
  return { alarms, rowsWritten: runtime.context.meter.totals().rowsWritten - before };
}

/** The run's status, once what follows its end is done as well: the alarm for its frames is set last. */
async function ended(runtime: ThreadRuntime, script: string, options: Record<string, unknown> = {}): Promise<string> {
  const { runId } = await startRun(runtime, script, options);
  await runtime.context.live.get(runId)!.done;
  await runtime.context.flush.flush();
  await eventually(
    () => runtime.context.storage.getAlarm(),
    (at) => at !== null,
  );
  return runtime.context.runs.find(runId)!.status;
}

describe("a day of a thread that does nothing", () => {
  it("P8: an idle thread sets no alarm and writes no row", async () => {
    await withWakes(async (thread) => {
      const clock = { now: EPOCH_MS };
      const runtime = await thread.create({ now: () => clock.now });
      expect(await liveADay(thread, runtime, clock)).toEqual({ alarms: 0, rowsWritten: 0 });
    });
  });

  it("P8: after a run it wakes for the last keep-alive and for its frames' expiry, then never again", async () => {
    await withWakes(async (thread) => {
      const clock = { now: EPOCH_MS };
      const runtime = await thread.create({ now: () => clock.now });
      expect(await ended(runtime, "@ say done")).toBe("success");
      expect((await liveADay(thread, runtime, clock)).alarms).toBeLessThanOrEqual(2);
      expect(await liveADay(thread, runtime, clock)).toEqual({ alarms: 0, rowsWritten: 0 });
    });
  });

  it("P8: a run that waits for an answer holds no alarm, no slot and no budget", async () => {
    await withWakes(async (thread) => {
      const clock = { now: EPOCH_MS };
      const runtime = await thread.create({ now: () => clock.now });
      const waits = { interrupt_before: ["tools"] };
      expect(await ended(runtime, '@ call bash {"command": "true"}\n@ say done', waits)).toBe("interrupted");
      expect((await liveADay(thread, runtime, clock)).alarms).toBeLessThanOrEqual(2);
      expect(await liveADay(thread, runtime, clock)).toEqual({ alarms: 0, rowsWritten: 0 });
      expect(runtime.context.runs.newest()).toMatchObject({ status: "interrupted", recovery: { attempts: 0 } });
    });
  });

  it("P8 P1: a run whose state nobody can read is given up after its attempts, not tried for ever", async () => {
    await withWakes(async (thread) => {
      const clock = { now: EPOCH_MS };
      const options = { now: () => clock.now, config: { runtime: { recovery_attempts: 3 } } };
      const first = await thread.create(options);
      expect(await ended(first, "@ say done")).toBe("success");
      thread.storage.sql.exec("UPDATE runs SET status = 'running'");
      thread.storage.sql.exec("UPDATE checkpoints SET body = x'00'");
      const runtime = await thread.wake(options);
      const { alarms } = await liveADay(thread, runtime, clock);
      expect(alarms).toBeLessThanOrEqual(3 + 2);
      expect(runtime.context.runs.newest()).toMatchObject({ status: "error", error: { error: "RecoveryError" } });
    });
  });

  it("P8 B6: a batch that ended leaves at most the one alarm that looked after its grant", async () => {
    await withWakes(async (thread) => {
      const clock = { now: EPOCH_MS };
      const wakes: BatchWake[] = [];
      const sendWake = async (wake: BatchWake) => void wakes.push(wake);
      const runtime = await thread.create({ now: () => clock.now, sendWake });
      const items = [1, 2, 3, 4].map((place) => ({ key: `k${place}`, prompt: "count" }));
      const body = { title: "Numbers", subagent_type: "general-purpose", items };
      const created = await runtime.batches.create(body, { submissionKey: null, role: "user" });
      if (!created.ok) throw new Error(created.error.message);
      for (let wake = wakes.shift(); wake !== undefined; wake = wakes.shift()) await consume(wake, runtime, clock);
      const { batch_id: batchId } = created.value.batch;
      expect(await runtime.batches.service("user").status(batchId)).toMatchObject({ status: "completed" });
      await runtime.context.flush.flush();
      expect((await liveADay(thread, runtime, clock)).alarms).toBeLessThanOrEqual(1);
      expect(await liveADay(thread, runtime, clock)).toEqual({ alarms: 0, rowsWritten: 0 });
    });
  });

  it("P8: a run that is to start hours later costs nothing until then, and starts by its alarm", async () => {
    await withWakes(async (thread) => {
      const clock = { now: EPOCH_MS };
      const runtime = await thread.create({ now: () => clock.now });
      const { runId } = await startRun(runtime, "@ say done", { after_seconds: 6 * 3_600 });
      await runtime.context.flush.flush();
      await runtime.arm();
      expect(await liveADay(thread, runtime, clock, 6 * 3_600_000 - 1)).toEqual({ alarms: 0, rowsWritten: 0 });
      expect(runtime.context.runs.find(runId)!.status).toBe("pending");
      // Its own, one keep-alive and its frames' expiry.
      expect((await liveADay(thread, runtime, clock)).alarms).toBeLessThanOrEqual(3);
      expect(runtime.context.runs.find(runId)!.status).toBe("success");
      expect(await liveADay(thread, runtime, clock)).toEqual({ alarms: 0, rowsWritten: 0 });
    });
  });

  it("P8 P1: a D1 that is broken for a day costs some hundred alarms of a thread that sleeps between them; then all arrives", async () => {
    await withWakes(async (thread) => {
      const clock = { now: EPOCH_MS };
      let isBroken = false;
      const options = { now: () => clock.now, db: brokenWhile(() => isBroken) };
      const first = await thread.create(options);
      const { runId } = await startRun(first, "@ say done");
      isBroken = true;
      await first.context.live.get(runId)!.done;
      await first.context.flush.tryFlush();
      await first.arm();
      const day = { alarms: 0, rowsWritten: 0 };
      const until = clock.now + DAY_MS;
      for (let at = await thread.storage.getAlarm(); at !== null && at <= until; at = await thread.storage.getAlarm()) {
        clock.now = Math.max(clock.now, at);
        await thread.storage.deleteAlarm();
        const runtime = await thread.wake(options);
        await runtime.onAlarm();
        day.alarms += 1;
        day.rowsWritten += runtime.context.meter.totals().rowsWritten;
        expect(day.alarms).toBeLessThan(1_000);
      }
      // Every five minutes, which is 288, and what comes before the wait has grown to that.
      expect(day.alarms).toBeLessThanOrEqual(300);
      // The epoch of each wake, its alarm, and that one set again behind the look.
      expect(day.rowsWritten).toBeLessThanOrEqual(3 * day.alarms + 2);
      isBroken = false;
      const runtime = await thread.wake(options);
      expect((await liveADay(thread, runtime, clock)).alarms).toBeLessThanOrEqual(2);
      const row = env.DB.prepare("SELECT status FROM runs WHERE thread_id = ?1").bind(thread.threadId);
      expect(await row.first<string>("status")).toBe("success");
      expect(await liveADay(thread, runtime, clock)).toEqual({ alarms: 0, rowsWritten: 0 });
    });
  });
});

/** The real D1, of which every batch fails while `isBroken`. */
function brokenWhile(isBroken: () => boolean): D1Database {
  return new Proxy(env.DB, {
    get: (db, name) => {
      if (name !== "batch") return Reflect.get(db, name).bind(db) as unknown;
      return async (statements: D1PreparedStatement[]) => {
        await Promise.resolve();
        if (isBroken()) throw new Error("D1_ERROR: internal error");
        return db.batch(statements);
      };
    },
  });
}

/** A delivery of the queue; each item answers at once. */
async function consume(wake: BatchWake, runtime: ThreadRuntime, clock: { now: number }): Promise<void> {
  const message = { id: "m", timestamp: new Date(clock.now), attempts: 1, body: wake };
  const delivery = createMessageBatch("deputy-batch-wakes", [message]);
  await consumeBatchWakes(delivery, {
    rows: new D1BatchRepository(env.DB),
    runner: { run: async () => done() },
    grants: {
      returnGrant: async ({ grantId, batchId }) => {
        await runtime.batches.returnGrant({ grant_id: grantId, batch_id: batchId });
      },
    },
    timers: systemTimers,
    now: () => clock.now,
    newId: () => crypto.randomUUID(),
    leaseMs: 120_000,
    resultCharsMax: 1_000,
    log: (what, details) => {
      throw new Error(`${what}: ${JSON.stringify(details)}`);
    },
  });
}
