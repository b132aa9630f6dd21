import { AIMessage, HumanMessage, RemoveMessage } from "@langchain/core/messages";
import {
  Annotation,
  Command,
  GraphRecursionError,
  MemorySaver,
  START,
  StateGraph,
  interrupt,
} from "@langchain/langgraph";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { buildAgentGraph, recursionLimitFor } from "../../../src/agent/graph/agent-graph.ts";
import { TurnBudgetError } from "../../../src/agent/graph/turn-budget.ts";
import type { AgentHook } from "../../../src/agent/hooks/hook.ts";
import { prepareMessageWrite } from "../../../src/agent/thread-state/coerce-messages.ts";
import {
  agentFixture,
  countedIds,
  fixtureServices,
  humanInput,
  plainTool,
  runConfig,
  storedState,
  succeeded,
  toolResults,
} from "../../support/agent-fixture.ts";
import { FakeChatModel, callsAnswer } from "../../support/fake-chat-model.ts";

function endlessCalls(count: number) {
  return Array.from({ length: count }, (_, index) => callsAnswer([{ id: `call-${index}`, name: "step" }]));
}

const step = plainTool("step", () => succeeded("stepped"));

describe("a turn", () => {
  test("an answer without calls ends the run after one model call", async () => {
    const fixture = agentFixture([new AIMessage("hello there")]);
    await fixture.graph.invoke(humanInput("hi", "h1"), runConfig());
    const state = await storedState(fixture);
    expect(state.messages.map((message) => message.text)).toEqual(["hi", "hello there"]);
    expect(state.run_progress).toEqual({ run_id: "run-1", turns: 1 });
    expect(fixture.model.requests[0]?.messages.map((message) => message.getType())).toEqual(["system", "human"]);
  });

  test("a missing id of the model's answer is given once and stays the same over reads (R185)", async () => {
    const fixture = agentFixture([new AIMessage({ content: "x" })]);
    await fixture.graph.invoke(humanInput("hi", "h1"), runConfig());
    const ids = await Promise.all(Array.from({ length: 10 }, async () => (await storedState(fixture)).messages[1]?.id));
    expect(new Set(ids)).toEqual(new Set(["fake-answer-1"]));
  });

  test("a turn-ending result ends the run without another model call, and the next run goes on", async () => {
    const ask = plainTool("ask", () => succeeded("which one?", { additionalKwargs: { deputy_ends_turn: true } }));
    const afterAgent: string[] = [];
    const hook: AgentHook = { name: "h", afterAgent: () => void afterAgent.push("ended") };
    const fixture = agentFixture([callsAnswer([{ id: "c1", name: "ask" }]), new AIMessage("thanks")], {
      tools: [ask],
      hooks: [hook],
    });
    await fixture.graph.invoke(humanInput("hi", "h1"), runConfig("run-1"));
    expect(fixture.model.requests).toHaveLength(1);
    expect(afterAgent).toEqual(["ended"]);
    await fixture.graph.invoke(humanInput("the red one", "h2"), runConfig("run-2"));
    expect((await storedState(fixture)).messages.at(-1)?.text).toBe("thanks");
  });
});

describe("parallel results", () => {
  const ids = ["c0", "c1", "c2", "c3", "c4", "c5"];

  test("six results keep call order live, in state and read back, although they finish in reverse", async () => {
    const finished: string[] = [];
    const gates = ids.map(() => Promise.withResolvers<void>());
    gates.at(-1)?.resolve();
    const wait = plainTool("wait", async (_, runtime) => {
      const index = ids.indexOf(runtime.toolCallId);
      await gates[index]?.promise;
      finished.push(runtime.toolCallId);
      gates[index - 1]?.resolve();
      return succeeded(runtime.toolCallId);
    });
    const answers = [callsAnswer(ids.map((id) => ({ id, name: "wait" }))), new AIMessage("done")];
    const fixture = agentFixture(answers, { tools: [wait] });
    const live = await fixture.graph.invoke(humanInput("go", "h1"), runConfig());
    expect(finished).toEqual(ids.toReversed());
    expect(toolResults(live as never).map((result) => result.tool_call_id)).toEqual(ids);
    expect(toolResults(await storedState(fixture)).map((result) => result.tool_call_id)).toEqual(ids);
    const reopened = buildAgentGraph({
      ...fixture,
      name: "lead",
      systemPrompt: "",
      tools: [],
      hooks: [],
      maxTurns: 1,
      checkpointer: fixture.saver,
      streamTokens: true,
    });
    const again = await reopened.getState({ configurable: { thread_id: "thread-1" } });
    expect(toolResults(again.values as never).map((result) => result.tool_call_id)).toEqual(ids);
    expect(new Set(toolResults(again.values as never).map((result) => result.id)).size).toBe(6);
  });

  test("a tool that throws does not lose its siblings' results (P2)", async () => {
    const mixed = plainTool("mixed", (_, runtime) => {
      if (runtime.toolCallId === "c0") throw new TypeError("broken");
      return succeeded("fine");
    });
    const answers = [callsAnswer(ids.map((id) => ({ id, name: "mixed" }))), new AIMessage("done")];
    const fixture = agentFixture(answers, { tools: [mixed] });
    await fixture.graph.invoke(humanInput("go", "h1"), runConfig());
    const statuses = toolResults(await storedState(fixture)).map((result) => result.status);
    expect(statuses).toEqual(["error", "success", "success", "success", "success", "success"]);
  });

  test("the task of a call carries only the call, not the thread's messages", async () => {
    const saved: unknown[] = [];
    const saver = new MemorySaver();
    const putWrites = saver.putWrites.bind(saver);
    saver.putWrites = async (config, writes, taskId) => {
      saved.push(...writes.filter(([channel]) => channel === "__pregel_tasks").map(([, value]) => value));
      return putWrites(config, writes, taskId);
    };
    const fixture = agentFixture([callsAnswer([{ id: "c1", name: "step" }]), new AIMessage("done")], {
      tools: [step],
      checkpointer: saver,
    });
    await fixture.graph.invoke(humanInput("a long history", "h1"), runConfig());
    expect(saved).toHaveLength(1);
    expect(JSON.stringify(saved)).not.toContain("a long history");
    expect(JSON.parse(JSON.stringify(saved))).toMatchObject([{ node: "tools", args: { call: { id: "c1" } } }]);
  });
});

describe("turn budget (R89)", () => {
  test.each([3, 40])("with %i turns the budget ends the run before LangGraph's limit does", async (maxTurns) => {
    const fixture = agentFixture(endlessCalls(maxTurns + 5), { tools: [step], maxTurns });
    const error = await fixture.graph.invoke(humanInput("go", "h1"), runConfig()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TurnBudgetError);
    expect(error).not.toBeInstanceOf(GraphRecursionError);
    expect((error as Error).name).toBe("GraphRecursionError");
    expect(fixture.model.requests).toHaveLength(maxTurns);
    const state = await storedState(fixture);
    expect(toolResults(state)).toHaveLength(maxTurns);
    expect(state.run_progress).toEqual({ run_id: "run-1", turns: maxTurns });
  });

  test("exactly the budget is enough for a run that ends with its last turn", async () => {
    const fixture = agentFixture([...endlessCalls(2), new AIMessage("done")], { tools: [step], maxTurns: 3 });
    await fixture.graph.invoke(humanInput("go", "h1"), runConfig());
    expect((await storedState(fixture)).messages.at(-1)?.text).toBe("done");
  });

  test("a new run counts from zero again", async () => {
    const answers = [...endlessCalls(2), new AIMessage("one"), new AIMessage("two")];
    const fixture = agentFixture(answers, { tools: [step], maxTurns: 3 });
    await fixture.graph.invoke(humanInput("go", "h1"), runConfig("run-1"));
    await fixture.graph.invoke(humanInput("go on", "h2"), runConfig("run-2"));
    expect((await storedState(fixture)).run_progress).toEqual({ run_id: "run-2", turns: 1 });
  });

  test("a child of 40 turns inside a parent's task is stopped by its own budget, not by an inherited limit", async () => {
    const saver = new MemorySaver();
    const child = buildAgentGraph({
      name: "child",
      model: new FakeChatModel(endlessCalls(45)),
      systemPrompt: "",
      tools: [step],
      hooks: [],
      maxTurns: 40,
      services: fixtureServices(),
      streamTokens: false,
    });
    const limits: unknown[] = [];
    const parent = new StateGraph(Annotation.Root({ outcome: Annotation<string> }))
      .addNode("work", async (_, config: LangGraphRunnableConfig) => {
        limits.push(config.recursionLimit);
        const limited = { ...config, recursionLimit: recursionLimitFor(40) };
        const error = await child.invoke(humanInput("go", "h1"), limited).catch((thrown: unknown) => thrown);
        return { outcome: (error as Error).message };
      })
      .addEdge(START, "work")
      .compile({ checkpointer: saver });
    const result = await parent.invoke({}, runConfig());
    expect(limits).toEqual([25]);
    expect(result.outcome).toBe("'child' has used its 40 model turns in this run without ending it");
  });
});

describe("hooks around a run", () => {
  test("beforeAgent runs once per run, not again when recovery resumes it (P2)", async () => {
    const began: (string | undefined)[] = [];
    const stop = new AbortController();
    const hook: AgentHook = { name: "h", beforeAgent: (_, context) => void began.push(context.runId) };
    let executions = 0;
    const slow = plainTool("slow", async (_, runtime) => {
      executions += 1;
      if (runtime.attempt > 1) return succeeded(`attempt ${runtime.attempt}`);
      stop.abort();
      return new Promise<never>((_resolve, reject) => {
        runtime.signal.addEventListener("abort", () => reject(new Error("aborted")));
        if (runtime.signal.aborted) reject(new Error("aborted"));
      });
    });
    const fixture = agentFixture([callsAnswer([{ id: "c1", name: "slow" }]), new AIMessage("done")], {
      tools: [slow],
      hooks: [hook],
    });
    await expect(
      fixture.graph.invoke(humanInput("go", "h1"), { ...runConfig(), signal: stop.signal }),
    ).rejects.toThrow();
    expect(toolResults(await storedState(fixture))).toEqual([]);
    await fixture.graph.invoke(null, runConfig());
    expect(began).toEqual(["run-1"]);
    expect(executions).toBe(2);
    expect(fixture.model.requests).toHaveLength(2);
    expect(toolResults(await storedState(fixture)).map((result) => result.text)).toEqual(["attempt 2"]);
  });

  test("interrupt() in a tool wrapper stops before the tool and resumes into it, with no second model answer", async () => {
    let executions = 0;
    const deploy = plainTool("deploy", () => succeeded(`deployed ${(executions += 1)}`));
    const gate: AgentHook = {
      name: "approval",
      async wrapToolCall(request, next) {
        const decision: unknown = interrupt({ question: `run ${request.call.name}?` });
        if (decision === "yes") return next(request);
        throw new Error("refused by the user");
      },
    };
    const fixture = agentFixture([callsAnswer([{ id: "c1", name: "deploy" }]), new AIMessage("done")], {
      tools: [deploy],
      hooks: [gate],
    });
    await fixture.graph.invoke(humanInput("go", "h1"), runConfig("run-1"));
    const waiting = await fixture.graph.getState({ configurable: { thread_id: "thread-1" } });
    expect(waiting.tasks.flatMap((task) => task.interrupts.map((one) => one.value))).toEqual([
      { question: "run deploy?" },
    ]);
    expect(executions).toBe(0);
    await fixture.graph.invoke(new Command({ resume: "yes" }), runConfig("run-2"));
    const state = await storedState(fixture);
    expect(executions).toBe(1);
    expect(fixture.model.requests).toHaveLength(2);
    expect(state.messages.map((message) => message.text)).toEqual(["go", "", "deployed 1", "done"]);
  });
});

describe("streams", () => {
  async function streamedTexts(streamTokens: boolean): Promise<string[]> {
    const fixture = agentFixture([new AIMessage("one two")], { streamTokens });
    const stream = await fixture.graph.stream(humanInput("hi", "h1"), { ...runConfig(), streamMode: "messages" });
    const texts: string[] = [];
    for await (const [message] of stream) texts.push(message.text);
    return texts;
  }

  test("an answer meant for the user streams token by token, once", async () => {
    expect(await streamedTexts(true)).toEqual(["one ", "two"]);
  });

  test("with streamTokens false no token is streamed", async () => {
    expect(await streamedTexts(false)).not.toContain("one ");
  });
});

describe("messages from outside", () => {
  const asHttp = { messages: [{ type: "human", content: "hello" }] };

  test("a plain-dict HTTP message has the same id over ten reads and in history (R185)", async () => {
    const fixture = agentFixture([new AIMessage("hi")]);
    const prepared = prepareMessageWrite([], asHttp.messages, countedIds("http"));
    if (!prepared.ok) throw new Error(prepared.error.message);
    await fixture.graph.invoke({ messages: prepared.value }, runConfig());
    const ids = new Set<string | undefined>();
    for (let read = 0; read < 10; read += 1) ids.add((await storedState(fixture)).messages[0]?.id);
    for await (const snapshot of fixture.graph.getStateHistory({ configurable: { thread_id: "thread-1" } })) {
      const first = (snapshot.values as { messages?: HumanMessage[] }).messages?.[0];
      if (first !== undefined) ids.add(first.id);
    }
    expect(ids).toEqual(new Set(["http-1"]));
  });

  test("a removal of an unknown id is refused before the write, and one that got through leaves the thread readable (R183)", async () => {
    const fixture = agentFixture([new AIMessage("hi"), new AIMessage("again")]);
    await fixture.graph.invoke(humanInput("hello", "h1"), runConfig("run-1"));
    const refused = prepareMessageWrite(
      (await storedState(fixture)).messages,
      [{ type: "remove", id: "nope" }],
      countedIds(),
    );
    expect(refused).toMatchObject({ ok: false, error: { reason: "unknown_removal", id: "nope" } });
    await fixture.graph.invoke({ messages: [new RemoveMessage({ id: "nope" })] }, runConfig("run-2"));
    expect((await storedState(fixture)).messages.map((message) => message.text)).toEqual(["hello", "hi", "again"]);
  });
});
