/** What a thread costs that has nothing to do: its alarms fire as they come due, over a day of the test's clock. */
import { describe, expect, it } from "vitest";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

const DAY_MS = 86_400_000;
const EPOCH_MS = Date.now() + 2 * DAY_MS;

interface Day {
  readonly alarms: number;
  readonly rowsWritten: number;
}

/** Fires every alarm of a day at its time; a loop would show as a count past any bound. */
async function liveADay(thread: ThreadWakes, runtime: ThreadRuntime, clock: { now: number }): Promise<Day> {
  const until = clock.now + DAY_MS;
  const before = runtime.context.meter.totals().rowsWritten;
  let alarms = 0;
  for (;;) {
    const at = await thread.storage.getAlarm();
    if (at === null || at > until || alarms > 20_000) break;
    clock.now = Math.max(clock.now, at);
    await thread.storage.deleteAlarm();
    alarms += 1;
    await runtime.onAlarm();
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
});
