/** A thread whose run waits for an answer, and what becomes of the waiting step when something else comes. */
import { interrupt } from "@langchain/langgraph";
import { isToolMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { startRun, type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

/** One delegation ends, another's child asks, and so does the lead. */
const WAITS = [
  "@ & delegate general-purpose :: one :: @ say found",
  "@ & delegate general-purpose :: two :: <<'CHILD'",
  "@ call ask {}",
  "@ say never",
  "CHILD",
  "@ & call ask {}",
  "@ say done",
].join("\n");

/** `answered`: whether it still has a question. */
function asking(answered: () => boolean) {
  return plainTool("ask", () => succeeded(answered() ? "known" : String(interrupt({ question: "?" }))));
}

async function waitingRun(thread: ThreadWakes, answered: () => boolean = () => false) {
  const runtime = await thread.create({ tools: [asking(answered)] });
  const { runId } = await startRun(runtime, WAITS);
  await runtime.context.live.get(runId)!.done;
  expect(runtime.context.runs.find(runId)).toMatchObject({ status: "interrupted", interrupts: [{}, {}] });
  return { runtime, runId };
}

async function stateOf({ context }: ThreadRuntime): Promise<ThreadState> {
  const { graph, configurable } = await context.graphs.forState();
  return (await graph.getState({ configurable })).values as ThreadState;
}

async function eventsOf({ context }: ThreadRuntime, thread: ThreadWakes): Promise<string[]> {
  await context.flush.flush();
  const query = "SELECT event_type FROM run_events WHERE thread_id = ?1 AND category = 'subagent' ORDER BY seq";
  const told = context.deps.db.prepare(query).bind(thread.threadId);
  const types = (await told.all<{ event_type: string }>()).results.map(({ event_type: type }) => type);
  return types.filter((type) => type !== "subagent.step");
}

const ledgerOf = ({ delegations = [] }: ThreadState) =>
  delegations.map(({ description, status }) => [description, status]);

describe("a run that waits for an answer", () => {
  it("P2 P5 and gets input instead: the step's results stay, its open calls and delegations end as cancelled", async () => {
    await withWakes(async (thread) => {
      const { runtime, runId } = await waitingRun(thread);
      const { runId: next } = await startRun(runtime, "@ say usable");
      await runtime.context.live.get(next)!.done;
      expect(runtime.context.runs.find(next)!.status).toBe("success");
      const state = await stateOf(runtime);
      expect(ledgerOf(state)).toEqual([
        ["one", "completed"],
        ["two", "cancelled"],
      ]);
      expect(state.messages.filter(isToolMessage).map((message) => message.text)).toEqual([
        "Task Succeeded. Result: found",
        expect.stringMatching(/^Task cancelled by user\./),
        expect.stringMatching(/^Cancelled: /),
      ]);
      expect(state.messages.at(-1)?.text).toBe("usable");
      expect(await eventsOf(runtime, thread)).toEqual([...starts(2), ...ends(2)]);
      expect(runtime.context.delegations.ofRun(runId)).toEqual([]);
    });
  });

  it("R115 and goes on in another run: its delegation is started once in the log and goes on under that run", async () => {
    await withWakes(async (thread) => {
      let known = false;
      const { runtime, runId } = await waitingRun(thread, () => known);
      known = true;
      const body = createRunBodySchema.parse({ assistant_id: "lead_agent", input: null });
      const created = await runtime.runs.create({ graph_id: "lead_agent", body });
      if (!created.ok) throw new Error(created.error.message);
      await runtime.context.live.get(created.value.runId)!.done;
      const state = await stateOf(runtime);
      expect(ledgerOf(state)).toEqual([
        ["one", "completed"],
        ["two", "completed"],
      ]);
      expect(state.messages.at(-1)?.text).toBe("done");
      expect(await eventsOf(runtime, thread)).toEqual([...starts(2), ...ends(2)]);
      for (const id of [runId, created.value.runId]) expect(runtime.context.delegations.ofRun(id)).toEqual([]);
    });
  });
});

const starts = (count: number) => Array.from({ length: count }, () => "subagent.start");
const ends = (count: number) => Array.from({ length: count }, () => "subagent.end");
