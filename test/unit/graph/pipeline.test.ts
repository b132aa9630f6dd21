import { AIMessage, HumanMessage, RemoveMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { describe, expect, test } from "vitest";
import type { AgentHook } from "../../../src/agent/hooks/hook.ts";
import { agentFixture, humanInput, plainTool, runConfig, storedState, succeeded } from "../../support/agent-fixture.ts";
import { callsAnswer } from "../../support/fake-chat-model.ts";

/** Notes every moment a hook is called at. */
function tracing(name: string, trace: string[]): AgentHook {
  const note = (moment: string) => void trace.push(`${moment} ${name}`);
  return {
    name,
    beforeAgent: () => note("beforeAgent"),
    beforeModel: () => note("beforeModel"),
    async wrapModelCall(request, next) {
      note("model>");
      const answer = await next(request);
      note("<model");
      return answer;
    },
    async wrapToolCall(request, next) {
      note("tool>");
      const result = await next(request);
      note("<tool");
      return result;
    },
    afterModel: () => note("afterModel"),
    afterAgent: () => note("afterAgent"),
  };
}

const TURN = [
  "beforeModel a",
  "beforeModel b",
  "model> a",
  "model> b",
  "<model b",
  "<model a",
  "afterModel b",
  "afterModel a",
];

describe("hook order", () => {
  const cases: [string, AIMessage[], string[]][] = [
    ["an answer", [new AIMessage("done")], ["beforeAgent a", "beforeAgent b", ...TURN, "afterAgent b", "afterAgent a"]],
    [
      "a call and an answer",
      [callsAnswer([{ id: "c1", name: "step" }]), new AIMessage("done")],
      [
        "beforeAgent a",
        "beforeAgent b",
        ...TURN,
        "tool> a",
        "tool> b",
        "<tool b",
        "<tool a",
        ...TURN,
        "afterAgent b",
        "afterAgent a",
      ],
    ],
  ];

  test.each(cases)(
    "before in list order, wrap nested with the first outermost, after reversed: %s",
    async (_, answers, order) => {
      const trace: string[] = [];
      const hooks = [tracing("a", trace), tracing("b", trace)];
      const fixture = agentFixture(answers, { hooks, tools: [plainTool("step", () => succeeded("ok"))] });
      await fixture.graph.invoke(humanInput("go", "h1"), runConfig());
      expect(trace).toEqual(order);
    },
  );
});

describe("what hooks write", () => {
  test("a hook sees what the one before it wrote, and all of it commits with the answer", async () => {
    const first: AgentHook = {
      name: "first",
      beforeModel: () => ({ artifacts: ["a"], messages: [new HumanMessage("reminder")] }),
    };
    const seen: unknown[] = [];
    const second: AgentHook = {
      name: "second",
      beforeModel(state) {
        seen.push(
          state.artifacts,
          state.messages.map((message) => message.text),
        );
        return { artifacts: ["b"], title: "titled" };
      },
    };
    const fixture = agentFixture([new AIMessage("done")], { hooks: [first, second] });
    await fixture.graph.invoke(humanInput("go", "h1"), runConfig());
    const state = await storedState(fixture);
    expect(seen).toEqual([["a"], ["go", "reminder"]]);
    expect(state).toMatchObject({ artifacts: ["a", "b"], title: "titled" });
    expect(state.messages.map((message) => message.text)).toEqual(["go", "reminder", "done"]);
  });

  test("afterModel may replace the answer under its id; dropped calls do not run and the answer is written once", async () => {
    const clamp: AgentHook = {
      name: "clamp",
      afterModel: (answer) => ({
        answer: new AIMessage({ content: "clamped", tool_calls: (answer.tool_calls ?? []).slice(0, 1), id: "another" }),
        append: [new HumanMessage({ content: "one call was cut", id: "note" })],
      }),
    };
    const seen: string[] = [];
    const watching: AgentHook = {
      name: "watching",
      afterModel: (_, state) => void seen.push(state.messages.map((message) => message.text).join("|")),
    };
    const ran: string[] = [];
    const tool = plainTool("step", (_, runtime) => succeeded(String(ran.push(runtime.toolCallId))));
    const two = callsAnswer([
      { id: "c1", name: "step" },
      { id: "c2", name: "step" },
    ]);
    const fixture = agentFixture([two, new AIMessage("done")], {
      hooks: [
        watching,
        {
          ...clamp,
          afterModel: (answer, ...rest) => (answer.text === "done" ? undefined : clamp.afterModel?.(answer, ...rest)),
        },
      ],
      tools: [tool],
    });
    await fixture.graph.invoke(humanInput("go", "h1"), runConfig());
    const state = await storedState(fixture);
    expect(ran).toEqual(["c1"]);
    expect(seen[0]).toBe("go|clamped|one call was cut");
    expect(state.messages.map((message) => message.id)).toEqual([
      "h1",
      "fake-answer-1",
      "note",
      expect.any(String),
      "fake-answer-2",
    ]);
  });

  test("a hook that removes a message the thread does not hold fails the run before anything is written", async () => {
    const hook: AgentHook = { name: "h", beforeModel: () => ({ messages: [new RemoveMessage({ id: "nope" })] }) };
    const fixture = agentFixture([new AIMessage("done")], { hooks: [hook] });
    await expect(fixture.graph.invoke(humanInput("go", "h1"), runConfig())).rejects.toThrow("removes 'nope'");
    expect((await storedState(fixture)).messages.map((message) => message.id)).toEqual(["h1"]);
  });

  test("a removal and a later write of the same id by another hook keep their order", async () => {
    const removing: AgentHook = { name: "a", beforeModel: () => ({ messages: [new RemoveMessage({ id: "h1" })] }) };
    const adding: AgentHook = {
      name: "b",
      beforeModel: () => ({ messages: [new HumanMessage({ content: "new", id: "h1" })] }),
    };
    const fixture = agentFixture([new AIMessage("done")], { hooks: [removing, adding] });
    const input = { messages: [...humanInput("go", "h1").messages, ...humanInput("second", "h2").messages] };
    await fixture.graph.invoke(input, runConfig());
    const state = await storedState(fixture);
    expect(state.messages.map((message) => message.text)).toEqual(["second", "new", "done"]);
  });
});

describe("hook context", () => {
  test("names the run, by metadata when configurable has none, and the agent", async () => {
    const seen: unknown[] = [];
    const hook: AgentHook = {
      name: "h",
      beforeModel: (_, context) => void seen.push([context.runId, context.agentName]),
    };
    const fixture = agentFixture([new AIMessage("done")], { hooks: [hook] });
    const config: RunnableConfig = { configurable: { thread_id: "t" }, metadata: { run_id: "run-9" } };
    await fixture.graph.invoke(humanInput("go", "h1"), config);
    expect(seen).toEqual([["run-9", "lead"]]);
  });
});
