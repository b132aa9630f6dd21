import { AIMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { buildAgentGraph, recursionLimitFor } from "../../../src/agent/graph/agent-graph.ts";
import type { Tool, ToolRuntime } from "../../../src/agent/tools/tool.ts";
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
import { FakeChatModel, callsAnswer } from "../../support/fake-chat-model.ts";

const CHILD_TURNS = 5;

/** A tool that runs a child graph under its own task, as interactive delegation does. */
function delegating(model: FakeChatModel, tools: Tool[]) {
  const child = buildAgentGraph({
    name: "child",
    model,
    systemPrompt: "You are a child.",
    tools,
    hooks: [],
    maxTurns: CHILD_TURNS,
    services: fixtureServices(),
    streamTokens: false,
  });
  return plainTool("task", async (_, runtime: ToolRuntime) => {
    const input = humanInput(`work of ${runtime.toolCallId}`, `${runtime.toolCallId}-prompt`);
    const result = await child.invoke(input, { ...runtime.config, recursionLimit: recursionLimitFor(CHILD_TURNS) });
    return succeeded(result.messages.at(-1)?.text ?? "nothing");
  });
}

const userTexts = (model: FakeChatModel) =>
  model.requests.map((request) => request.messages.slice(1).map((message) => message.text));

describe("a child graph without a checkpointer of its own", () => {
  test("starts every task with a fresh ThreadState (R128) and keeps the parent's state to the parent", async () => {
    const model = new FakeChatModel([new AIMessage("first result"), new AIMessage("second result")], "child");
    const answers = [
      callsAnswer([{ id: "t1", name: "task" }]),
      callsAnswer([{ id: "t2", name: "task" }]),
      new AIMessage("done"),
    ];
    const fixture = agentFixture(answers, { tools: [delegating(model, [])] });
    await fixture.graph.invoke(humanInput("go", "h1"), runConfig());
    expect(userTexts(model)).toEqual([["work of t1"], ["work of t2"]]);
    const state = await storedState(fixture);
    expect(toolResults(state).map((result) => result.text)).toEqual(["first result", "second result"]);
    expect(state.messages).toHaveLength(6);
    expect(state.run_progress).toEqual({ run_id: "run-1", turns: 3 });
  });

  test("continues from its last committed step after a crash: its finished turns and calls are not repeated (P2)", async () => {
    const stop = new AbortController();
    const ran: string[] = [];
    const step = plainTool("step", async (_, runtime) => {
      ran.push(runtime.toolCallId);
      if (runtime.toolCallId !== "s2" || runtime.attempt > 1) return succeeded(runtime.toolCallId);
      stop.abort();
      throw new Error("the object was evicted");
    });
    const model = new FakeChatModel(
      [callsAnswer([{ id: "s1", name: "step" }]), callsAnswer([{ id: "s2", name: "step" }]), new AIMessage("result")],
      "child",
    );
    const fixture = agentFixture([callsAnswer([{ id: "t1", name: "task" }]), new AIMessage("done")], {
      tools: [delegating(model, [step])],
    });
    await expect(
      fixture.graph.invoke(humanInput("go", "h1"), { ...runConfig(), signal: stop.signal }),
    ).rejects.toThrow();
    expect(ran).toEqual(["s1", "s2"]);
    await fixture.graph.invoke(null, runConfig());
    expect(ran).toEqual(["s1", "s2", "s2"]);
    expect(model.requests).toHaveLength(3);
    expect(fixture.model.requests).toHaveLength(2);
    expect((await storedState(fixture)).messages.map((message) => message.text)).toEqual(["go", "", "result", "done"]);
  });

  test("its tokens do not reach the parent's messages stream", async () => {
    const model = new FakeChatModel([new AIMessage("secret thoughts")], "child");
    const fixture = agentFixture([callsAnswer([{ id: "t1", name: "task" }]), new AIMessage("open answer")], {
      tools: [delegating(model, [])],
    });
    const stream = await fixture.graph.stream(humanInput("go", "h1"), { ...runConfig(), streamMode: "messages" });
    const streamed: string[] = [];
    for await (const [message] of stream) if (message.getType() !== "tool") streamed.push(message.text);
    expect(streamed.join("")).toBe("open answer");
  });
});
