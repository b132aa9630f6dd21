import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { AgentHook } from "../../../src/agent/hooks/hook.ts";
import { TOOL_ERROR_DETAIL_CHARS_MAX, toolErrorsHook } from "../../../src/agent/hooks/tool-errors.ts";
import type { Tool } from "../../../src/agent/tools/tool.ts";
import {
  type FixtureServices,
  agentFixture,
  fixtureServices,
  humanInput,
  plainTool,
  runConfig,
  storedState,
  succeeded,
  toolResults,
} from "../../support/agent-fixture.ts";
import { callsAnswer } from "../../support/fake-chat-model.ts";

const FILE = "/workspace/notes.txt";
const bytes = (text: string) => new TextEncoder().encode(text);

interface CallOptions {
  readonly tools?: readonly Tool[];
  readonly hooks?: readonly AgentHook[];
  readonly services?: FixtureServices;
  readonly answer?: AIMessage;
  readonly args?: Record<string, unknown>;
}

/** One call of the first tool, through the whole graph. */
async function callOnce(options: CallOptions) {
  const tools = options.tools ?? [];
  const name = tools[0]?.name ?? "missing";
  const answer = options.answer ?? callsAnswer([{ id: "c1", name, args: options.args ?? {} }]);
  const services = options.services ?? fixtureServices();
  const hooks = options.hooks ?? [];
  const fixture = agentFixture([answer, new AIMessage("done")], { tools, hooks, services });
  await fixture.graph.invoke(humanInput("go", "h1"), runConfig());
  const state = await storedState(fixture);
  const [result] = toolResults(state);
  if (result === undefined) throw new Error("the call has no result");
  return { result, state, services, fixture };
}

describe("a call that cannot run becomes an error result, never a throw", () => {
  test("an unknown tool is named together with the tools there are", async () => {
    const { result } = await callOnce({
      tools: [plainTool("ls", () => succeeded(""))],
      answer: callsAnswer([{ id: "c1", name: "list_files" }]),
    });
    expect(result).toMatchObject({ status: "error", name: "list_files", tool_call_id: "c1" });
    expect(result.text).toContain("there is no tool 'list_files'; available: ls");
  });

  test("a schema failure names the path, the rule and the tool's arguments", async () => {
    const tool = plainTool(
      "read",
      () => succeeded(""),
      z.object({ path: z.string(), from: z.int().min(1).optional() }),
    );
    const { result } = await callOnce({ tools: [tool], args: { path: 7, from: 0 } });
    expect(result.status).toBe("error");
    expect(result.text).toContain("path: Invalid input: expected string, received number");
    expect(result.text).toContain("from: Too small: expected number to be >=1");
    expect(result.text).toContain("Its arguments: path, from");
  });

  test("a call whose arguments did not parse is answered with its raw text and does not run", async () => {
    let ran = false;
    const tool = plainTool("write", () => succeeded(String((ran = true))));
    const answer = callsAnswer([{ id: "c1", name: "write" }]);
    answer.additional_kwargs = {
      deputy_invalid_tool_calls: { c1: { raw: '{"path": "a', error: "Unterminated string" } },
    };
    const { result } = await callOnce({ tools: [tool], answer });
    expect(result.status).toBe("error");
    expect(result.text).toContain('{"path": "a');
    expect(result.text).toContain("Unterminated string");
    expect(ran).toBe(false);
  });

  test("a thrown error keeps its class and the first characters of its detail", async () => {
    const tool = plainTool("grep", () => {
      throw new RangeError("x".repeat(TOOL_ERROR_DETAIL_CHARS_MAX + 1));
    });
    const { result } = await callOnce({ tools: [tool] });
    const detail = "x".repeat(TOOL_ERROR_DETAIL_CHARS_MAX);
    expect(result.text).toMatch(new RegExp(`^Error: Tool 'grep' failed with RangeError: ${detail}\n[A-Z]`));
    expect(result.id).toMatch(/^id-/);
  });

  test("the detail of an error never ends in half a character, which storage would replace", async () => {
    const tool = plainTool("grep", () => {
      throw new RangeError(`${"x".repeat(TOOL_ERROR_DETAIL_CHARS_MAX - 1)}\u{1f600}`);
    });
    const { result } = await callOnce({ tools: [tool] });
    expect(result.text.isWellFormed()).toBe(true);
  });

  test("a hook that throws, or answers another call, is an error result too", async () => {
    const throwing: AgentHook = { name: "h", wrapToolCall: () => Promise.reject(new Error("hook broke")) };
    const thrown = await callOnce({ tools: [plainTool("ls", () => succeeded("x"))], hooks: [throwing] });
    expect(thrown.result.text).toContain("hook broke");
    const lying: AgentHook = {
      name: "h",
      wrapToolCall: async () => ({ message: new ToolMessage({ content: "x", tool_call_id: "other" }) }),
    };
    const lied = await callOnce({ tools: [plainTool("ls", () => succeeded("x"))], hooks: [lying] });
    expect(lied.result).toMatchObject({ tool_call_id: "c1", status: "error" });
    expect(lied.result.text).toContain("answered call 'other' instead of 'c1'");
  });

  test("a write to a channel that parallel calls cannot share is refused by name", async () => {
    const tool = plainTool("rename", () => succeeded("ok", { update: { title: "mine" } }));
    const { result, state } = await callOnce({ tools: [tool] });
    expect(result.text).toContain("may not write channel 'title'; allowed: artifacts");
    expect(state.title).toBeUndefined();
  });

  test("a wrapper outside the tool-errors hook sees the failure as a result", async () => {
    const seen: (string | undefined)[] = [];
    const receipt: AgentHook = {
      name: "receipt",
      async wrapToolCall(request, next) {
        const result = await next(request);
        seen.push(result.message.status);
        return result;
      },
    };
    const services = fixtureServices();
    const errors = toolErrorsHook({ newId: () => services.newId(), discard: (id) => services.workspace.discard(id) });
    const tool = plainTool("ls", () => Promise.reject(new Error("broken")));
    await callOnce({ tools: [tool], hooks: [receipt, errors], services });
    expect(seen).toEqual(["error"]);
  });
});

describe("staged workspace writes", () => {
  test("of a call that threw are discarded", async () => {
    const services = fixtureServices();
    const tool = plainTool("save", (_, runtime) => {
      runtime.workspace.write(FILE, bytes("half"));
      throw new Error("then broke");
    });
    await callOnce({ tools: [tool], services });
    expect(services.discarded).toContain("c1");
  });

  test("of an attempt that a wrapper caught and repeats are discarded before the repeat", async () => {
    const services = fixtureServices();
    const discardedBefore: number[] = [];
    const retry: AgentHook = {
      name: "retry",
      async wrapToolCall(request, next) {
        try {
          return await next(request);
        } catch {
          return next(request);
        }
      },
    };
    const tool = plainTool("save", (_, runtime) => {
      discardedBefore.push(services.discarded.length);
      runtime.workspace.write(FILE, bytes("half"));
      if (runtime.attempt === 1) throw new Error("then broke");
      return succeeded(`attempt ${runtime.attempt}`);
    });
    const { result } = await callOnce({ tools: [tool], hooks: [retry], services });
    expect(result.text).toBe("attempt 2");
    expect(discardedBefore).toEqual([0, 1]);
  });

  test("are never begun for a call that a hook let through after the run was cancelled", async () => {
    const services = fixtureServices();
    const abort = new AbortController();
    const late: AgentHook = {
      name: "late",
      wrapToolCall(request, next) {
        abort.abort();
        return next(request);
      },
    };
    let ran = false;
    const tool = plainTool("save", (_, runtime) => {
      ran = true;
      runtime.workspace.write(FILE, bytes("late"));
      return succeeded("saved");
    });
    const answer = callsAnswer([{ id: "c1", name: "save" }]);
    const fixture = agentFixture([answer, new AIMessage("done")], { tools: [tool], hooks: [late], services });
    const driven = fixture.graph.invoke(humanInput("go", "h1"), { ...runConfig(), signal: abort.signal });
    await expect(driven).rejects.toThrow(/abort/i);
    expect(ran).toBe(false);
  });

  test("of a call that answered with status error are kept for its commit", async () => {
    const services = fixtureServices();
    const tool = plainTool("bash", (_, runtime) => {
      runtime.workspace.write(FILE, bytes("written before exit 1"));
      return { status: "error", content: "exit 1" };
    });
    const { result } = await callOnce({ tools: [tool], services });
    expect(result.status).toBe("error");
    expect(services.discarded).toEqual([]);
  });
});

describe("what a tool is given", () => {
  test("its parsed arguments, attempt, run, state of the step and the custom stream", async () => {
    const seen: Record<string, unknown> = {};
    const tool = plainTool(
      "look",
      (args, runtime) => {
        Object.assign(seen, { args, attempt: runtime.attempt, runId: runtime.runId, id: runtime.toolCallId });
        seen["messages"] = runtime.state().messages.map((message) => message.getType());
        runtime.emit({ type: "progress", of: runtime.toolCallId });
        return succeeded("seen", { update: { artifacts: ["a.txt", "a.txt"] }, additionalKwargs: { mark: 1 } });
      },
      z.object({ limit: z.int().default(5) }),
    );
    const fixture = agentFixture([callsAnswer([{ id: "c1", name: "look" }]), new AIMessage("done")], { tools: [tool] });
    const custom: unknown[] = [];
    const stream = await fixture.graph.stream(humanInput("go", "h1"), { ...runConfig(), streamMode: "custom" });
    for await (const event of stream) custom.push(event);
    expect(seen).toEqual({ args: { limit: 5 }, attempt: 1, runId: "run-1", id: "c1", messages: ["human", "ai"] });
    expect(custom).toEqual([{ type: "progress", of: "c1" }]);
    const state = await storedState(fixture);
    expect(state.artifacts).toEqual(["a.txt"]);
    expect(toolResults(state)[0]).toMatchObject({ status: "success", name: "look", additional_kwargs: { mark: 1 } });
  });

  test("the schema the model sees does not require an argument that has a default", async () => {
    const tool = plainTool("look", () => succeeded("x"), z.object({ path: z.string(), limit: z.int().default(5) }));
    const fixture = agentFixture([new AIMessage("done")], { tools: [tool] });
    await fixture.graph.invoke(humanInput("go", "h1"), runConfig());
    expect(fixture.model.requests[0]?.tools).toMatchObject([
      { name: "look", parameters: { type: "object", required: ["path"] } },
    ]);
  });
});
