/** A run that ends between the commit of a step's results and the checkpoint that would take them in. */
import { isToolMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

const never = (): Promise<never> => new Promise(() => undefined);

/** Ends the object's life at the first root checkpoint behind `holds`: what was committed before it stays. */
function dieBeforeNextCheckpoint(runtime: ThreadRuntime, holds: () => boolean): void {
  const { saver } = runtime.context;
  const put = saver.put.bind(saver);
  saver.put = (config, ...rest) =>
    (config.configurable?.["checkpoint_ns"] ?? "") === "" && holds() ? never() : put(config, ...rest);
}

async function stateOf({ context }: ThreadRuntime): Promise<ThreadState> {
  const { graph, configurable } = await context.graphs.forState();
  const { values } = await graph.getState({ configurable });
  return values as ThreadState;
}

/** The wake behind a cancel that was accepted; then a run that says "usable". */
async function cancelledAndUsed(thread: ThreadWakes, runtime: ThreadRuntime, runId: string): Promise<ThreadState> {
  runtime.context.runs.save({ ...runtime.context.runs.find(runId)!, cancelRequested: true });
  const next = await thread.wake();
  expect(next.context.runs.find(runId)!.status).toBe("interrupted");
  const { runId: later } = await startRun(next, "@ say usable");
  await next.context.live.get(later)!.done;
  expect(next.context.runs.find(later)!.status).toBe("success");
  return stateOf(next);
}

const pendingIn = async ({ context }: ThreadRuntime) =>
  (await context.saver.getTuple({ configurable: { thread_id: context.threadId, checkpoint_ns: "" } }))?.pendingWrites ??
  [];

describe("P2 a cancelled run keeps what was committed behind its last checkpoint", () => {
  it("a delegation's result, and the end of its ledger entry", async () => {
    await withWakes(async (thread) => {
      let answered = false;
      const answer = Promise.withResolvers<void>();
      const tool = plainTool("probe", async () => {
        await answer.promise;
        return succeeded("seen");
      });
      const first = await thread.create({ tools: [tool] });
      dieBeforeNextCheckpoint(first, () => answered);
      const script = "@ delegate general-purpose :: look :: <<'CHILD'\n@ call probe {}\n@ say found\nCHILD\n@ say done";
      const { runId } = await startRun(first, script);
      await eventually(
        () => first.context.delegations.ofRun(runId).length,
        (count) => count === 1,
      );
      answered = true;
      answer.resolve();
      await eventually(
        () => first.context.delegations.ofRun(runId).length,
        (count) => count === 0,
      );
      const { messages, delegations } = await cancelledAndUsed(thread, first, runId);
      expect(messages.filter(isToolMessage).map((message) => message.text)).toEqual(["Task Succeeded. Result: found"]);
      expect(delegations?.map(({ status }) => status)).toEqual(["completed"]);
    });
  });

  it("the lead's answer", async () => {
    await withWakes(async (thread) => {
      const first = await thread.create();
      let asked = false;
      dieBeforeNextCheckpoint(first, () => asked);
      const { runId } = await startRun(first, "@ delay 20\n@ say one two three four five six seven eight");
      await eventually(
        () => first.context.headCheckpointId(),
        (head) => head !== null,
      );
      asked = true;
      await eventually(
        () => pendingIn(first),
        (writes) => writes.some(([, channel]) => channel === "run_progress"),
      );
      const { messages } = await cancelledAndUsed(thread, first, runId);
      expect(messages.map((message) => message.text)).toEqual([
        expect.stringContaining("one two"),
        "one two three four five six seven eight",
        "@ say usable",
        "usable",
      ]);
    });
  });
});
