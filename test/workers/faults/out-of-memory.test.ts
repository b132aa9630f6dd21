/** The breaker of a run that takes the isolate's memory: counted where the alarm ends, since nothing inside can count it. */
import { expect, it } from "vitest";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, tomorrow, withWakes } from "../../support/thread-wakes.ts";

/** As the platform says it. */
const SPENT = "Durable Object's isolate exceeded its memory limit due to overflowing the I/O and was reset.";

it("P8 P1: each alarm that ran out of memory is counted once and passed on; past the budget the run ends and says so, progress or not", async () => {
  await withWakes(async (thread) => {
    const acted: string[] = [];
    const gate = Promise.withResolvers<void>();
    let isSpent = false;
    const config = { runtime: { recovery_out_of_memory: 1 } };
    /** An instance that is held in its call number `place`; the calls before that one are done. */
    const heldAt = (place: number) => ({
      config,
      now: () => {
        if (isSpent) throw new Error(SPENT);
        return tomorrow();
      },
      tools: [
        plainTool("act", async () => {
          acted.push(`call ${acted.length}`);
          if (acted.length === place) await gate.promise;
          return succeeded("done");
        }),
      ],
    });
    const first = await thread.create(heldAt(1));
    const { runId } = await startRun(first, "@ call act {}\n@ call act {}\n@ call act {}\n@ say done");
    const spend = async (runtime: typeof first) => {
      isSpent = true;
      try {
        await expect(runtime.onAlarm()).rejects.toThrow("exceeded its memory limit");
      } finally {
        isSpent = false;
      }
      return runtime.context.runs.find(runId)!.recovery.outOfMemory;
    };
    const reached = (count: number) =>
      eventually(
        () => acted.length,
        (seen) => seen === count,
      );
    await reached(1);
    expect(first.context.runs.find(runId)!.recovery.outOfMemory).toBeUndefined();
    expect(await spend(first)).toBe(1);
    // Within the budget: the call that was open is made again, and one more after it.
    const second = await thread.wake(heldAt(3));
    await reached(3);
    expect(second.context.runs.find(runId)).toMatchObject({ status: "running", attempt: 2 });
    expect(await spend(second)).toBe(2);
    const third = await thread.wake(heldAt(0));
    const ended = third.context.runs.find(runId)!;
    expect(ended).toMatchObject({ status: "error", error: { error: "RecoveryError" } });
    expect(ended.error!.message).toContain("exceeded the memory limit 2 times");
    expect(third.context.live.size).toBe(0);
    const held = [first, second].map(({ context }) => context.live.get(runId)!.done);
    gate.resolve();
    await Promise.all(held);
    expect(acted).toHaveLength(3);
    expect(third.context.runs.find(runId)).toEqual(ended);
  });
});

it("a fault of another kind is passed on and not counted", async () => {
  await withWakes(async (thread) => {
    let isBroken = false;
    const now = () => {
      if (isBroken) throw new Error("Network connection lost.");
      return tomorrow();
    };
    const runtime = await thread.create({ now });
    const { runId } = await startRun(runtime, "@ delay 200\n@ say a b c");
    isBroken = true;
    await expect(runtime.onAlarm()).rejects.toThrow("Network connection lost");
    isBroken = false;
    expect(runtime.context.runs.find(runId)!.recovery.outOfMemory).toBeUndefined();
    await runtime.context.live.get(runId)?.done;
    expect(runtime.context.runs.find(runId)!.status).toBe("success");
  });
});
