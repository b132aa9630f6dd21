/** A child that works longer than one alarm, and longer than one instance of its object, with shortened limits. */
import { expect, it } from "vitest";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, tomorrow, withWakes } from "../../support/thread-wakes.ts";

const KEEP_ALIVE_MS = 1_000;
const FIRINGS = 20;

it("P1 P2: each alarm ends at once and leaves the child at work; when the instance ends the next alarm hands it over", async () => {
  await withWakes(async (thread) => {
    const clock = { now: tomorrow() };
    const acted: string[] = [];
    const gates = new Map<string, PromiseWithResolvers<void>>();
    /** Each instance is held in the child's second call. */
    const instance = (name: string) => ({
      config: { runtime: { keep_alive_seconds: KEEP_ALIVE_MS / 1_000 } },
      now: () => clock.now,
      tools: [
        plainTool("quick", async () => {
          acted.push(`${name} quick`);
          return succeeded("quick done");
        }),
        plainTool("slow", async () => {
          acted.push(`${name} slow`);
          const gate = Promise.withResolvers<void>();
          gates.set(name, gate);
          await gate.promise;
          return succeeded("slow done");
        }),
      ],
    });
    const isHeld = (name: string) =>
      eventually(
        () => gates.has(name),
        (held) => held,
      );
    /** The alarm is there within a keep-alive, fires, and is there again; it waits for nobody. */
    const fire = async (runtime: ThreadRuntime, runId: string) => {
      const at = (await thread.storage.getAlarm())!;
      expect(at - clock.now).toBeLessThanOrEqual(KEEP_ALIVE_MS);
      clock.now = Math.max(clock.now, at);
      await thread.storage.deleteAlarm();
      await runtime.onAlarm();
      expect(runtime.context.live.get(runId)).toBeDefined();
    };

    const first = await thread.create(instance("first"));
    const script = [
      "@ delegate general-purpose :: work :: <<'CHILD'",
      "@ call quick {}",
      "@ call slow {}",
      "@ say child done",
      "CHILD",
      "@ say lead done",
    ].join("\n");
    const { runId } = await startRun(first, script);
    await isHeld("first");
    await first.arm();
    for (let firing = 0; firing < FIRINGS; firing += 1) await fire(first, runId);
    expect(acted).toEqual(["first quick", "first slow"]);

    // The instance is gone with what it held in memory; its alarm is not.
    const second = await thread.wake(instance("second"));
    await isHeld("second");
    for (let firing = 0; firing < FIRINGS; firing += 1) await fire(second, runId);
    const third = await thread.wake(instance("third"));
    await isHeld("third");
    gates.get("third")!.resolve();
    await third.context.live.get(runId)!.done;

    // What the child had finished is not done again, by whichever instance; what was open is.
    expect(acted).toEqual(["first quick", "first slow", "second slow", "third slow"]);
    expect(third.context.runs.find(runId)).toMatchObject({ status: "success", attempt: 3 });
    expect(await third.context.graphs.renderState(undefined)).toContain("child done");
    await third.context.flush.flush();
    const told = third.context.deps.db.prepare(
      "SELECT event_type FROM run_events WHERE thread_id = ?1 AND event_type IN ('subagent.start', 'subagent.end', 'run.end')",
    );
    const { results } = await told.bind(thread.threadId).all<{ event_type: string }>();
    expect(results.map(({ event_type }) => event_type).toSorted()).toEqual([
      "run.end",
      "subagent.end",
      "subagent.start",
    ]);

    const zombies = [first, second].map(({ context }) => context.live.get(runId)!.done);
    for (const gate of gates.values()) gate.resolve();
    await Promise.all(zombies);
    expect(acted).toHaveLength(4);
  });
});
