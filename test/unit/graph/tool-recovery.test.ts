/** `once` and `ask` through the graph in Node, with LangGraph's own saver: what issue 4's `command.resume` will meet. */
import { AIMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { AgentServices } from "../../../src/agent/graph/agent-services.ts";
import type { ToolStarts } from "../../../src/agent/tools/tool-starts.ts";
import type { Tool, ToolRecovery, ToolRuntime } from "../../../src/agent/tools/tool.ts";
import { ItemToolStarts } from "../../../src/agent/batches/item-tool-starts.ts";
import {
  agentFixture,
  fixtureServices,
  humanInput,
  plainTool,
  runConfig,
  storedState,
  succeeded,
  toolResults,
} from "../../support/agent-fixture.ts";

/** Starts that earlier processes left, by call id; the rest is counted here. */
function startsLeft(left: Record<string, number>): ToolStarts & { readonly counts: Map<string, number> } {
  const counts = new Map(Object.entries(left));
  return {
    counts,
    look: ({ toolCallId }) => ({ earlier: counts.get(toolCallId) ?? 0, idempotencyKey: `key of ${toolCallId}` }),
    note: async ({ toolCallId }) => void counts.set(toolCallId, (counts.get(toolCallId) ?? 0) + 1),
  };
}

const call = new AIMessage({
  content: "",
  tool_calls: [{ id: "call_1", name: "act", args: { to: "bob" }, type: "tool_call" }],
});

function acting(recovery: ToolRecovery, left: Record<string, number>) {
  const runs: Pick<ToolRuntime, "attempt" | "idempotencyKey">[] = [];
  const tool: Tool = {
    ...plainTool("act", (_args, { attempt, idempotencyKey }) => {
      runs.push({ attempt, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) });
      return succeeded("acted");
    }),
    parameters: z.object({ to: z.string() }),
    recovery,
  };
  const starts = startsLeft(left);
  const services: AgentServices = { ...fixtureServices(), toolStarts: starts };
  const fixture = agentFixture([call, new AIMessage("over")], { tools: [tool], services });
  const go = () => fixture.graph.invoke(humanInput("go", "h1"), runConfig());
  const answer = (resume: unknown) => fixture.graph.invoke(new Command({ resume }), runConfig());
  const questions = async () => {
    const { tasks } = await fixture.graph.getState({ configurable: { thread_id: "thread-1" } });
    return tasks.flatMap(({ interrupts }) => interrupts.map(({ value }) => value as Record<string, unknown>));
  };
  const result = async () => toolResults(await storedState(fixture))[0];
  return { runs, starts, go, answer, questions, result };
}

describe("a call that was not started before", () => {
  it.each(["once", "ask"] as const)("%s: is noted, then runs with its key as attempt 1", async (recovery) => {
    const { runs, starts, go } = acting(recovery, {});
    await go();
    expect(runs).toEqual([{ attempt: 1, idempotencyKey: "key of call_1" }]);
    expect(starts.counts.get("call_1")).toBe(1);
  });

  it("safe: is not noted and has no key", async () => {
    const { runs, starts, go } = acting("safe", {});
    await go();
    expect(runs).toEqual([{ attempt: 1 }]);
    expect(starts.counts.size).toBe(0);
  });
});

describe("a call that an earlier process had started", () => {
  it("once: is answered, not run; the text names the key", async () => {
    const { runs, go, result } = acting("once", { call_1: 1 });
    await go();
    expect(runs).toEqual([]);
    const told = await result();
    expect(told).toMatchObject({ status: "error", additional_kwargs: { deputy_outcome_unknown: true } });
    expect(told!.text).toContain("key of call_1");
  });

  it("ask: waits with a question that says what it is about", async () => {
    const { runs, go, questions, result } = acting("ask", { call_1: 1 });
    await go();
    expect(runs).toEqual([]);
    expect(await result()).toBeUndefined();
    expect(await questions()).toMatchObject([
      { type: "tool_outcome_unknown", tool: "act", tool_call_id: "call_1", arguments: '{"to":"bob"}', execution: 1 },
    ]);
  });

  it.each(["run_again", { action: "run_again" }])("ask: %j runs it again under the same key", async (answer) => {
    const { runs, go, answer: resume, result } = acting("ask", { call_1: 1 });
    await go();
    await resume(answer);
    expect(runs).toEqual([{ attempt: 2, idempotencyKey: "key of call_1" }]);
    expect((await result())!.text).toBe("acted");
  });

  it.each(["skip", { action: "skip" }, true, "yes", { action: 1 }])("ask: %j does not run it", async (answer) => {
    const { runs, go, answer: resume, result } = acting("ask", { call_1: 1 });
    await go();
    await resume(answer);
    expect(runs).toEqual([]);
    expect((await result())!.text).toContain("a person chose not to repeat it");
  });

  it("ask: the approval of the first repeat is none of the second", async () => {
    const { runs, go, answer, questions } = acting("ask", { call_1: 2 });
    await go();
    expect(await questions()).toMatchObject([{ execution: 1 }]);
    await answer("run_again");
    expect(runs).toEqual([]);
    expect(await questions()).toMatchObject([{ execution: 2 }]);
    await answer("run_again");
    expect(runs).toEqual([{ attempt: 3, idempotencyKey: "key of call_1" }]);
  });
});

describe("a batch item's calls", () => {
  const item = (over: Partial<ConstructorParameters<typeof ItemToolStarts>[0]> = {}) =>
    new ItemToolStarts({
      batchId: "b1",
      owner: "alice",
      threadId: "t1",
      ordinal: 3,
      key: "k",
      prompt: "p",
      attempt: 1,
      ...over,
    });
  const once = (toolCallId: string, args: Record<string, unknown>) =>
    ({ toolCallId, tool: "act", recovery: "once", args, checkpointNs: "" }) as const;

  it("have keys that a redo of the item repeats for equal calls, whatever their ids, and only for those", () => {
    const first = item();
    const key = first.look(once("c1", { to: "bob", n: { a: 1, b: [2] } })).idempotencyKey;
    expect(first.look(once("c1", { to: "bob", n: { a: 1, b: [2] } })).idempotencyKey).toBe(key);
    const twice = first.look(once("c2", { n: { b: [2], a: 1 }, to: "bob" })).idempotencyKey;
    expect(twice).not.toBe(key);
    const redo = item({ attempt: 2 });
    expect(redo.look(once("d1", { n: { b: [2], a: 1 }, to: "bob" }))).toEqual({ earlier: 0, idempotencyKey: key });
    expect(redo.look(once("d2", { to: "bob", n: { a: 1, b: [2] } })).idempotencyKey).toBe(twice);
    expect(redo.look(once("d3", { to: "eve" })).idempotencyKey).not.toBe(key);
    expect(item({ ordinal: 4 }).look(once("c1", { to: "bob", n: { a: 1, b: [2] } })).idempotencyKey).not.toBe(key);
  });

  it("ask: one of a later attempt may have been made before", () => {
    const ask = { ...once("c1", {}), recovery: "ask" } as const;
    expect(item().look(ask).earlier).toBe(0);
    expect(item({ attempt: 2 }).look(ask).earlier).toBe(1);
  });
});
