/** A run that cannot be recovered says why: in its status, in its last event and to whoever reads its stream (P1, P5). */
import { expect, it, vi } from "vitest";
import type { Frame } from "../../../src/platform/durable-storage/frame-log.ts";
import { askTwice, GraphGates } from "../../support/asking-graphs.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import { putCheckpoint, threadConfig } from "../../support/checkpoints.ts";
import { withWakes } from "../../support/thread-wakes.ts";

const graph = askTwice(new GraphGates());
const config = { graphs: { g: graph }, runtime: { recovery_out_of_memory: 1, recovery_attempts: 1 } };

it.each([
  { spent: { outOfMemory: 2 }, why: "exceeded the memory limit 2 times" },
  { spent: { attempts: 1 }, why: "1 attempts without progress" },
])("past its budget: $why", async ({ spent, why }) => {
  await withWakes(async (thread) => {
    const first = await thread.create({ config });
    const body = createRunBodySchema.parse({ assistant_id: "g", input: { log: ["in"] } });
    const created = await first.runs.create({ graph_id: "g", body });
    const runId = created.ok ? created.value.runId : "";
    await first.context.live.get(runId)?.done;
    const stored = first.context.runs.find(runId)!;
    const headCheckpointId = first.context.headCheckpointId();
    const recovery = { ...stored.recovery, headCheckpointId, ...spent };
    first.context.runs.save({ ...stored, status: "running", interrupts: null, recovery });
    const second = await thread.wake({ config });
    const ended = second.context.runs.find(runId)!;
    expect([ended.status, ended.error]).toMatchObject(["error", { error: "RecoveryError" }]);
    expect(ended.error?.message).toContain(why);
    expect(lastFrame(second.context.frames, runId)).toMatchObject({
      event: "error",
      data: JSON.stringify(ended.error),
    });
    const events = thread.storage.sql.exec<{ events: string }>("SELECT events FROM event_outbox").toArray();
    expect(JSON.stringify(events)).toContain(why);
  });
});

it("P4: a nested step is progress, also when the clock was set back before it", async () => {
  await withWakes(async (thread) => {
    const first = await thread.create({ config });
    const body = createRunBodySchema.parse({ assistant_id: "g", input: { log: ["in"] } });
    const created = await first.runs.create({ graph_id: "g", body });
    const runId = created.ok ? created.value.runId : "";
    await first.context.live.get(runId)?.done;
    const stored = first.context.runs.find(runId)!;
    const recovery = { ...stored.recovery, headCheckpointId: first.context.headCheckpointId(), attempts: 1 };
    first.context.runs.save({ ...stored, status: "running", interrupts: null, recovery });
    const realNow = Date.now;
    vi.spyOn(Date, "now").mockImplementation(() => realNow() - 3_600_000);
    try {
      await putCheckpoint(first.context.saver, threadConfig(thread.threadId, "nested:1"));
    } finally {
      vi.restoreAllMocks();
    }
    const second = await thread.wake({ config });
    expect(second.context.runs.find(runId)).toMatchObject({ attempt: stored.attempt + 1, error: null });
    await second.context.live.get(runId)?.done;
  });
});

function lastFrame(
  frames: { next: (runId: string, afterId: number) => { kind: string; frame?: Frame; firstAvailableId?: number } },
  runId: string,
): Frame | undefined {
  let last: Frame | undefined;
  for (let after = 0; ;) {
    const next = frames.next(runId, after);
    if (next.kind === "gap") after = (next.firstAvailableId ?? 1) - 1;
    else if (next.frame === undefined) return last;
    else after = (last = next.frame).id;
  }
}
