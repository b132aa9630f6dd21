import { describe, expect, it } from "vitest";
import type { Tool, ToolRuntime } from "../../../src/agent/tools/tool.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

interface Start {
  readonly id: string;
  readonly attempt: number;
}

/** Notes each start; of them, those of the first wake never end. */
function probe(starts: Start[], answer: () => Promise<string>): Tool {
  return plainTool("probe", async (_args, { toolCallId, attempt }: ToolRuntime) => {
    starts.push({ id: toolCallId, attempt });
    return succeeded(await answer());
  });
}

const never = (): Promise<string> => new Promise(() => undefined);

const LONGER_THAN_FRAMES_WAIT_MS = 1_200;

const DELEGATION = "@ delegate general-purpose :: look :: <<'CHILD'\n@ call probe {}\n@ say seen\nCHILD\n@ say done";

describe("a run whose object died", () => {
  it("P1: runs the lead's open call again under its id, as attempt 2; a call that comes later is attempt 1", async () => {
    await withWakes(async (thread) => {
      const starts: Start[] = [];
      const first = await thread.create({ tools: [probe(starts, never)] });
      const { runId } = await startRun(first, "@ call probe {}\n@ call probe {}\n@ say done");
      await eventually(
        () => starts.length,
        (count) => count === 1,
      );
      const second = await thread.wake({ tools: [probe(starts, async () => "answered")] });
      await second.context.live.get(runId)!.done;
      expect(second.context.runs.find(runId)!.status).toBe("success");
      const [before, again, later] = starts;
      expect(again).toEqual({ id: before!.id, attempt: 2 });
      expect(later!.id).not.toBe(before!.id);
      expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2, 1]);
    });
  });

  it("P1 P2: is not given up while its child takes turns, though the lead's own line stands still", async () => {
    await withWakes(async (thread) => {
      const config = { runtime: { recovery_attempts: 1 } };
      const starts: Start[] = [];
      const sticksAt = (count: number) => () => (starts.length === count ? never() : Promise.resolve("seen"));
      const script =
        "@ delegate general-purpose :: look :: <<'CHILD'\n@ call probe {}\n@ call probe {}\n@ say seen\nCHILD\n@ say done";
      const first = await thread.create({ config, tools: [probe(starts, sticksAt(1))] });
      const { runId } = await startRun(first, script);
      const startsReach = (wanted: number) =>
        eventually(
          () => starts.length,
          (count) => count === wanted,
        );
      await startsReach(1);
      // The first call again, then the second one, in which the object dies once more.
      await thread.wake({ config, tools: [probe(starts, sticksAt(3))] });
      await startsReach(3);
      const third = await thread.wake({ config, tools: [probe(starts, async () => "seen")] });
      await third.context.live.get(runId)?.done;
      expect(third.context.runs.find(runId)).toMatchObject({ status: "success", error: null });
      expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2, 1, 2]);
    });
  });

  it("P1: had stored what clients were told while its children took turns, though the lead took none", async () => {
    await withWakes(async (thread) => {
      const starts: Start[] = [];
      const slow = plainTool("slow", async () => {
        await scheduler.wait(LONGER_THAN_FRAMES_WAIT_MS);
        return succeeded("slept");
      });
      const first = await thread.create({ tools: [slow, probe(starts, never)] });
      const child = "@ call slow {}\n@ call probe {}\n@ say seen";
      const script = `@ delegate general-purpose :: look :: <<'CHILD'\n${child}\nCHILD\n@ say done`;
      const { runId } = await startRun(first, script, { stream_mode: ["custom"] });
      await eventually(
        () => starts.length,
        (count) => count === 1,
      );
      const { frames } = thread.sleeping().context;
      expect(customOf({ next: (afterId) => frames.next(runId, afterId) })).toEqual(
        expect.arrayContaining(["task_started", "task_running"]),
      );
    });
  });

  it("R115: tells a delegation's start once: one subagent.start, no task_started from the wake that goes on", async () => {
    await withWakes(async (thread) => {
      const starts: Start[] = [];
      const first = await thread.create({ tools: [probe(starts, never)] });
      const { runId } = await startRun(first, DELEGATION, { stream_mode: ["custom"] });
      await eventually(
        () => starts.length,
        (count) => count === 1,
      );
      const second = await thread.wake({ tools: [probe(starts, async () => "answered")] });
      const resumed = second.context.live.get(runId)!;
      await resumed.done;
      expect(second.context.runs.find(runId)!.status).toBe("success");
      await second.context.flush.flush();
      const events = await eventsIn(second.context.deps.db, thread.threadId);
      expect(events.filter((type) => type === "subagent.start")).toHaveLength(1);
      expect(events.filter((type) => type === "subagent.end")).toHaveLength(1);
      expect(customOf(first.context.live.get(runId)!.frames)).toEqual(
        expect.arrayContaining(["task_started", "task_running"]),
      );
      const told = customOf(resumed.frames);
      expect(told).not.toContain("task_started");
      expect(told.at(-1)).toBe("task_completed");
    });
  });

  it("R115: logs the end of a delegation, and its call's result, when all that is left is to finish a cancel", async () => {
    await withWakes(async (thread) => {
      const starts: Start[] = [];
      const first = await thread.create({ tools: [probe(starts, never)] });
      const { runId } = await startRun(first, DELEGATION);
      await eventually(
        () => starts.length,
        (count) => count === 1,
      );
      first.context.runs.save({ ...first.context.runs.find(runId)!, cancelRequested: true });
      const second = await thread.wake();
      expect(second.context.runs.find(runId)!.status).toBe("interrupted");
      await second.context.flush.flush();
      const events = await eventsIn(second.context.deps.db, thread.threadId);
      expect(events.slice(-3)).toEqual(["subagent.end", "llm.tool.result", "run.end"]);
    });
  });
});

async function eventsIn(db: D1Database, threadId: string): Promise<string[]> {
  const told = db.prepare("SELECT event_type FROM run_events WHERE thread_id = ?1 ORDER BY seq").bind(threadId);
  return (await told.all<{ event_type: string }>()).results.map(({ event_type: type }) => type);
}

interface Frames {
  next(afterId: number): {
    kind: string;
    frame?: { id: number; event: string; data: unknown };
    firstAvailableId?: number;
  };
}

/** The types of the `custom` frames a reader from the start gets. */
function customOf(frames: Frames): string[] {
  const types: string[] = [];
  let cursor = 0;
  for (;;) {
    const found = frames.next(cursor);
    if (found.kind === "none") return types;
    if (found.frame === undefined) {
      cursor = found.firstAvailableId! - 1;
      continue;
    }
    cursor = found.frame.id;
    if (found.frame.event === "custom") types.push((JSON.parse(String(found.frame.data)) as { type: string }).type);
  }
}
