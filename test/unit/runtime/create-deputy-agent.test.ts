import { AIMessage, AIMessageChunk, HumanMessage, type BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { FakeListChatModel, FakeStreamingChatModel } from "@langchain/core/utils/testing";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { createDeputyAgent, SubagentRuntime, toGraph } from "../../../src/agent/embedding.ts";
import { CALL_ID_PATTERN } from "../../../src/agent/models/call-id.ts";
import type { ModelRequest } from "../../../src/agent/models/model.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { delegatesOnce, LEAD_PROMPT, taskCalls, taskResults } from "../../support/delegation-fixture.ts";
import { promptOf, ReplyModel, textAnswer, type Reply } from "../../support/reply-model.ts";

const PROMPT = "  You answer.\n\n<rules>be brief & exact</rules>\t\n";

const lead =
  (reply: Reply): Reply =>
  (request, config) =>
    promptOf(request) === LEAD_PROMPT ? reply(request, config) : textAnswer("child says hello");

const input = (text = LEAD_PROMPT) => ({ messages: [new HumanMessage(text)] });
const systemOf = (request: ModelRequest | undefined): string | undefined =>
  request?.messages.find((message) => message.getType() === "system")?.text;

const named = (name: string) => plainTool(name, () => succeeded("done"));
const shared = () => ({ subagentRuntime: new SubagentRuntime() });

describe("an agent of the caller's", () => {
  it("R193 the caller's system prompt is sent byte for byte, with and without delegation", async () => {
    const model = new ReplyModel(() => textAnswer("ok"));
    await createDeputyAgent({ model, systemPrompt: PROMPT }).invoke(input());
    await createDeputyAgent({ model, systemPrompt: PROMPT, subagentRuntime: new SubagentRuntime() }).invoke(input());
    expect(model.requests.map(systemOf)).toEqual([PROMPT, PROMPT]);
  });

  it("R195 what the model is told about delegating stands in the task tool, and nowhere in the prompt", async () => {
    const model = new ReplyModel(() => textAnswer("ok"));
    await createDeputyAgent({ model, subagentRuntime: new SubagentRuntime() }).invoke(input());
    const [request] = model.requests;
    expect(systemOf(request)).toBeUndefined();
    expect(request?.tools.map(({ name }) => name)).toEqual(["task"]);
    expect(request?.tools[0]?.description).toContain("general-purpose");
  });

  it("R191 delegates through the runtime's admission and keeps the ledger", async () => {
    const runtime = new SubagentRuntime({ config: { max_running: 1 } });
    const model = new ReplyModel(lead(delegatesOnce({ id: "c1", prompt: "say hello" })));
    const agent = createDeputyAgent({ model, subagentRuntime: runtime });
    const state = await agent.invoke(input());
    expect(state.messages.at(-1)?.text).toContain("child says hello");
    expect(state.delegations).toMatchObject([{ id: "c1", status: "completed" }]);
    expect(runtime.admission).toMatchObject({ max_running: 1, running: 0 });
  });

  it("R34 R191 two graphs on one runtime share its slots: the second is refused while the first runs", async () => {
    const runtime = new SubagentRuntime({ config: { max_running: 1, admission_policy: "reject" } });
    const free = Promise.withResolvers<void>();
    const holding = new ReplyModel(async (request, config) => {
      if (promptOf(request) === LEAD_PROMPT) return delegatesOnce({ id: "c1", prompt: "hold" })(request, config);
      await free.promise;
      return textAnswer("held");
    });
    const other = new ReplyModel(lead(delegatesOnce({ id: "c2", prompt: "second" })));
    const first = createDeputyAgent({ model: holding, subagentRuntime: runtime }).invoke(input());
    await vi.waitFor(() => expect(runtime.admission.running).toBe(1));
    const second = await createDeputyAgent({ model: other, subagentRuntime: runtime }).invoke(input());
    expect(taskResults(second)[0]?.text).toContain("No subagent slot is free");
    expect(other.requests.filter((request) => promptOf(request) === "second")).toEqual([]);
    free.resolve();
    expect((await first).delegations).toMatchObject([{ status: "completed" }]);
  });

  it("R194 a complete chain of one's own and a runtime exclude each other", () => {
    const model = new ReplyModel(() => textAnswer("ok"));
    const both = () => createDeputyAgent({ model, hooks: [], subagentRuntime: new SubagentRuntime() });
    expect(both).toThrow("subagentRuntime and hooks exclude each other");
    expect(createDeputyAgent({ model, hooks: [] }).descriptor.hooks).toEqual([]);
  });

  it("names of models are the runtime's; an unknown one is refused with those there are", () => {
    expect(createDeputyAgent({ model: "scripted" }).descriptor.model).toBe("scripted");
    expect(() => createDeputyAgent({ model: "gone" })).toThrow("there is no model 'gone'; usable are: scripted");
  });

  it.each<[string, object, string]>([
    ["an unknown option", { system_prompt: "x" }, "there is no option 'system_prompt'; allowed are: model, tools"],
    ["no model", { model: undefined }, "model: must be a chat model"],
    ["an empty model", { model: {} }, "model: must be a chat model"],
    ["no turn at all", { maxTurns: 0 }, "maxTurns: must be an integer from 1 to 1000 (got 0)"],
    ["no number of turns", { maxTurns: Number.NaN }, "maxTurns: must be an integer"],
    ["a prompt that is no text", { systemPrompt: 3 }, "systemPrompt: must be a string"],
    ["a runtime that is none", { subagentRuntime: {} }, "subagentRuntime: must be a SubagentRuntime"],
    ["a tool that is none", { tools: [null] }, "tools: must be an array of tools"],
    ["two tools of one name", { tools: [named("a"), named("a")] }, "tools: two are named 'a'"],
    ["a tool named as the runtime's", { tools: [named("task")], ...shared() }, "tools: two are named 'task'"],
    ["a tool no provider takes", { tools: [named("a b")] }, 'tools: the name "a b" is illegal'],
    ["a text for a list", { allowedSubagents: "general-purpose", ...shared() }, "allowedSubagents: must be null"],
    ["nobody", { allowedSubagents: ["gone"], ...shared() }, "there is no subagent 'gone'; there are: general-purpose"],
    ["subagents without a runtime", { allowedSubagents: [] }, "allowedSubagents needs a subagentRuntime"],
  ])("refuses %s when it is made, in words, and ignores nothing", (_what, options, words) => {
    expect(() => createDeputyAgent({ model: "scripted", ...options })).toThrow(words);
  });

  it("the specialist of the shell is offered only where there is a shell", async () => {
    const model = new ReplyModel(() => textAnswer("ok"));
    for (const tools of [[], [named("bash")]]) await createDeputyAgent({ model, tools, ...shared() }).invoke(input());
    const offered = model.requests.map(({ tools }) => tools.find(({ name }) => name === "task")?.description);
    expect(offered.map((text) => text?.includes("- bash:"))).toEqual([false, true]);
  });

  it("R165 is taken for a graph by whoever wants one", () => {
    const agent = createDeputyAgent({ model: "scripted" });
    expect(toGraph(agent)).toBe(agent.graph);
  });
});

describe("R45 a run of an embedded agent", () => {
  /** Three calls in every run's first answer, against a cap of three a run. */
  const greedy: Reply = lead((request) => {
    const own = request.messages.findLastIndex((message) => message.text === LEAD_PROMPT);
    if (request.messages.slice(own).some((message) => message.getType() === "tool")) return textAnswer("done");
    const run = request.messages.filter((message) => message.text === LEAD_PROMPT).length;
    return taskCalls(...[1, 2, 3].map((call) => ({ id: `r${run}-${call}`, prompt: "hello" })));
  });
  const build = () =>
    createDeputyAgent({
      model: new ReplyModel(greedy),
      subagentRuntime: new SubagentRuntime({ maxTotalPerRun: 3 }),
      checkpointer: new MemorySaver(),
    });
  const thread = { configurable: { thread_id: "t" } };

  it("R45 gives the run an id, and its human message carries it", async () => {
    const agent = build();
    const run = await agent.stream(input(), { ...thread, streamMode: "values" });
    let last: { messages: BaseMessage[] } | undefined;
    for await (const values of run) last = values as { messages: BaseMessage[] };
    expect(run.runId).toMatch(/^[0-9a-f-]{36}$/);
    expect(last?.messages[0]?.additional_kwargs["run_id"]).toBe(run.runId);
    const given = await agent.stream(input(), { configurable: { ...thread.configurable, run_id: "mine" } });
    for await (const _ of given) void _;
    expect(given.runId).toBe("mine");
  });

  it("R45 a second run on the thread has its whole budget", async () => {
    const agent = build();
    await agent.invoke(input(), thread);
    const { delegations = [] } = await agent.invoke(input(), thread);
    expect(delegations.map(({ id, status }) => [id, status])).toEqual(
      ["r1-1", "r1-2", "r1-3", "r2-1", "r2-2", "r2-3"].map((id) => [id, "completed"]),
    );
    expect(new Set(delegations.map(({ run_id }) => run_id)).size).toBe(2);
  });

  it("R45 without a run id the whole ledger counts, so the bare graph's second run has nothing left", async () => {
    const agent = build();
    vi.spyOn(console, "warn").mockImplementation(() => {});
    await agent.graph.invoke(input(), thread);
    const state: unknown = await agent.graph.invoke(input(), thread);
    vi.restoreAllMocks();
    const { delegations, messages } = state as { delegations: { id: string }[]; messages: BaseMessage[] };
    expect(delegations.map(({ id }) => id)).toEqual(["r1-1", "r1-2", "r1-3"]);
    expect(messages.at(-1)?.text).toContain("[SUBAGENT LIMIT REACHED]");
  });
});

describe("P5 a run that was abandoned", () => {
  const build = () => {
    const stuck = Promise.withResolvers<void>();
    const model = new ReplyModel(async (request) => {
      if (promptOf(request) !== LEAD_PROMPT) {
        if (promptOf(request) === "quick") return textAnswer("quick result");
        stuck.resolve();
        return new Promise<never>(() => {});
      }
      const human = request.messages.filter((message) => message.text === LEAD_PROMPT).length;
      if (human > 1) return textAnswer("on");
      return taskCalls({ id: "fast", prompt: "quick" }, { id: "slow", prompt: "hang" });
    });
    const checkpointer = new MemorySaver();
    const agent = createDeputyAgent({ model, checkpointer, ...shared() });
    return { agent, model, stuck: stuck.promise };
  };
  const thread = { configurable: { thread_id: "t" } };

  it("P5 P2 leaves nothing under way once the thread goes on: what had ended is kept, the rest is cancelled", async () => {
    const { agent, model, stuck } = build();
    const abort = new AbortController();
    const run = agent.invoke(input(), { ...thread, signal: abort.signal });
    run.catch(() => undefined);
    await stuck;
    await vi.waitFor(async () => {
      const tuple = await (agent.graph.checkpointer as MemorySaver).getTuple(thread);
      expect(JSON.stringify(tuple?.pendingWrites)).toContain("quick result");
    });
    abort.abort(new Error("the user left"));
    await expect(run).rejects.toThrow("the user left");
    const { messages, delegations } = await agent.invoke(input(), thread);
    expect(delegations?.map(({ id, status }) => [id, status])).toEqual([
      ["fast", "completed"],
      ["slow", "cancelled"],
    ]);
    expect(messages.map((message) => message.getType())).toEqual(["human", "ai", "tool", "tool", "human", "ai"]);
    expect(messages[2]?.text).toContain("quick result");
    const sent = model.requests
      .at(-1)
      ?.messages.map(({ text }) => text)
      .join("\n");
    expect(sent).not.toContain("already delegated, do NOT");
  });
});

describe("LangChain's models and tools", () => {
  const add = tool(async ({ left, right }: { left: number; right: number }) => String(left + right), {
    name: "add",
    description: "Adds two numbers.",
    schema: z.object({ left: z.number(), right: z.number() }),
  });

  it("a LangChain tool runs in the graph and in a child, with its own schema and its errors as results", async () => {
    const failing = tool(async () => Promise.reject(new Error("no luck")), {
      name: "failing",
      description: "Fails.",
      schema: { type: "object", properties: { why: { type: "string" } }, required: ["why"] },
    });
    const call = (id: string, name: string, args: Record<string, unknown>) =>
      new AIMessage({ content: "", tool_calls: [{ id, name, args, type: "tool_call" }] });
    const model = new ReplyModel((request) => {
      const results = request.messages.filter((message) => message.getType() === "tool");
      const plan = [
        call("1", "add", { left: 20, right: 22 }),
        call("2", "add", { left: "x" }),
        call("3", "failing", { why: "" }),
      ];
      return plan[results.length] ?? textAnswer("done");
    });
    const { messages } = await createDeputyAgent({ model, tools: [add, failing] }).invoke(input());
    const results = messages.filter((message) => message.getType() === "tool") as unknown as {
      text: string;
      status: string;
    }[];
    expect(results.map(({ status }) => status)).toEqual(["success", "error", "error"]);
    expect(results[0]?.text).toBe("42");
    expect(results[1]?.text).toContain("right");
    expect(results[2]?.text).toContain("no luck");
    const spec = model.requests[0]?.tools.find(({ name }) => name === "failing");
    expect(spec?.parameters).toMatchObject({ type: "object", required: ["why"] });
  });

  it("a LangChain model answers through the strict boundary: our call ids, a finish reason, its tools bound", async () => {
    const call = {
      content: "",
      tool_call_chunks: [{ name: "add", args: '{"left":1,"right":2}', id: "theirs", index: 0 }],
    };
    const turns = [call, { content: "three" }].map((fields) => new AIMessageChunk(fields));
    const bound: unknown[] = [];
    class Planned extends FakeListChatModel {
      override bindTools(tools: unknown[]) {
        bound.push(...tools);
        return new FakeStreamingChatModel({ chunks: turns.splice(0, 1) }) as never;
      }
    }
    const agent = createDeputyAgent({ model: new Planned({ responses: ["unused"] }), tools: [add] });
    const { messages } = await agent.invoke(input());
    const [, called, result, answer] = messages as [BaseMessage, AIMessage, BaseMessage, AIMessage];
    expect(called.tool_calls?.[0]?.id).toMatch(CALL_ID_PATTERN);
    expect(called.response_metadata["finish_reason"]).toBe("tool_calls");
    expect([result.text, answer.text, answer.response_metadata["finish_reason"]]).toEqual(["3", "three", "stop"]);
    expect(bound[0]).toMatchObject({ type: "function", function: { name: "add" } });
  });

  it("its tokens reach the messages stream under the id of the stored answer", async () => {
    const agent = createDeputyAgent({ model: new FakeListChatModel({ responses: ["one two"] }) });
    const run = await agent.stream(input(), { streamMode: ["messages", "values"] });
    const tokens: BaseMessage[] = [];
    let last: { messages: BaseMessage[] } | undefined;
    for await (const [mode, chunk] of run as AsyncIterable<[string, unknown]>) {
      if (mode === "messages") tokens.push((chunk as [BaseMessage])[0]);
      else last = chunk as { messages: BaseMessage[] };
    }
    expect(tokens.map(({ text }) => text).join("")).toBe("one two");
    expect(new Set(tokens.map(({ id }) => id))).toEqual(new Set([last?.messages.at(-1)?.id]));
  });

  it("R193 an agent has no files unless the caller gives it some, and a tool that writes is told so", async () => {
    const writer = plainTool("write", (_args, { workspace }) => {
      const written = workspace.write("/workspace/a", new Uint8Array());
      return succeeded(written.ok ? "written" : written.error.reason);
    });
    const model = new ReplyModel((request) =>
      request.messages.some((message) => message.getType() === "tool")
        ? textAnswer("done")
        : new AIMessage({ content: "", tool_calls: [{ id: "1", name: "write", args: {}, type: "tool_call" }] }),
    );
    const { messages } = await createDeputyAgent({ model, tools: [writer] }).invoke(input());
    expect(messages[2]?.text).toBe("path_refused");
  });
});
