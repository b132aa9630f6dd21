import {
  AIMessage,
  type AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { classifyModelError } from "../../../src/domain/model-errors/classify-model-error.ts";
import { CALL_ID_PATTERN } from "../../../src/agent/models/call-id.ts";
import { type ChatModel, ModelFailure } from "../../../src/agent/models/model.ts";
import { HeaderGates } from "../../../src/agent/models/header-gate.ts";
import { type AnthropicModelOptions, createAnthropicModel } from "../../../src/agent/models/anthropic.ts";
import { REFUSAL_TEXT } from "../../../src/agent/models/model-answer.ts";
import { type AnthropicServer, startAnthropicServer } from "../../support/anthropic-server.ts";

let server: AnthropicServer;
let model: ChatModel;
let ids = 0;

const modelOf = (options: Partial<AnthropicModelOptions> = {}): ChatModel =>
  createAnthropicModel({
    name: "claude",
    apiKey: "k",
    baseUrl: server.url,
    model: "claude-test",
    modelIdleMs: 10_000,
    newId: () => `m-${(ids += 1)}`,
    random: Math.random,
    now: Date.now,
    gates: new HeaderGates(),
    fetch: ((input, init) => fetch(input, init)) satisfies typeof fetch,
    ...options,
  });

beforeEach(async () => {
  server = await startAnthropicServer();
  model = modelOf();
});

afterEach(async () => {
  await server.close();
  expect(server.violations).toEqual([]);
  vi.unstubAllEnvs();
});

const tools = [{ name: "bash", description: "run", parameters: { type: "object", properties: {} } }];

function requestOf(lines: string[], since: BaseMessage[] = []) {
  const prompt = new HumanMessage(lines.map((line) => `@ ${line}`).join("\n"));
  return { messages: [new SystemMessage("sys"), prompt, ...since], tools };
}

const ask = (lines: string[], config = {}, since: BaseMessage[] = []): Promise<AIMessage> =>
  model.generate(requestOf(lines, since), config);

async function failureOf(work: Promise<unknown>): Promise<ModelFailure> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ModelFailure);
  return error as ModelFailure;
}

it("streams text under one id of ours, with finish reason, model name and the provider's usage (R63)", async () => {
  const seen: AIMessageChunk[] = [];
  const callbacks = [
    {
      handleLLMNewToken: (...args: unknown[]) => {
        seen.push((args[5] as { chunk: { message: AIMessageChunk } }).chunk.message);
      },
    },
  ];
  const answer = await ask(["usage 11 3", "quirk cached", "say grüße aus der ferne"], { callbacks });
  expect(answer).toBeInstanceOf(AIMessage);
  expect(answer.content).toBe("grüße aus der ferne");
  expect(answer.id).toMatch(/^m-\d+$/);
  expect(answer.response_metadata).toEqual({ finish_reason: "stop", model_name: "claude-test" });
  expect(answer.usage_metadata).toEqual({
    input_tokens: 131,
    output_tokens: 3,
    total_tokens: 134,
    input_token_details: { cache_read: 100, cache_creation: 20 },
  });
  const spoken = seen.filter((chunk) => chunk.text !== "");
  expect(spoken.map((chunk) => chunk.content)).toEqual(["grüße ", "aus ", "der ", "ferne"]);
  expect(new Set(seen.map((chunk) => chunk.id))).toEqual(new Set([answer.id]));
  expect(server.requests[0]).toMatchObject({
    model: "claude-test",
    max_tokens: 32_000,
    stream: true,
    system: "sys",
    thinking: { type: "disabled" },
    tools: [{ name: "bash", description: "run", input_schema: { type: "object" } }],
  });
});

it("leaves usage missing when the provider sends none (R67)", async () => {
  expect((await ask(["quirk no-usage", "say hello"])).usage_metadata).toBeUndefined();
  expect((await ask(["usage 4 2", "say hello"])).usage_metadata).toEqual({
    input_tokens: 4,
    output_tokens: 2,
    total_tokens: 6,
  });
});

it("takes credentials and address from the caller, and nothing from the process", async () => {
  vi.stubEnv("ANTHROPIC_API_KEY", "from-process");
  vi.stubEnv("ANTHROPIC_AUTH_TOKEN", "from-process");
  vi.stubEnv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
  vi.stubEnv("LANGSMITH_GATEWAY", "true");
  vi.stubEnv("LANGSMITH_API_KEY", "from-process");
  expect((await ask(["say hello"])).text).toBe("hello");
  expect(server.headers[0]).toMatchObject({ "x-api-key": "k" });
  expect(JSON.stringify(server.headers)).not.toContain("from-process");
});

describe("calls", () => {
  const parallel = ['& call bash {"command":"echo {}"}', '& call bash {"command":"two"}', "& call ls {}"];

  it.each(["none", "repeat-ids", "whole-input"])(
    "come whole and in parallel, strictly parsed, under ids of ours: quirk %s (R185)",
    async (quirk) => {
      const answer = await ask([`quirk ${quirk}`, ...parallel]);
      expect(answer.tool_calls?.map(({ name, args }) => ({ name, args }))).toEqual([
        { name: "bash", args: { command: "echo {}" } },
        { name: "bash", args: { command: "two" } },
        { name: "ls", args: {} },
      ]);
      expect(answer.response_metadata["finish_reason"]).toBe("tool_calls");
      const minted = answer.tool_calls?.map((call) => call.id ?? "") ?? [];
      expect(new Set(minted).size).toBe(3);
      for (const id of minted) expect(id).toMatch(CALL_ID_PATTERN);
      const theirs = Object.values(answer.additional_kwargs["deputy_provider_call_ids"] as object);
      expect(theirs).toEqual([0, 1, 2].map((at) => expect.stringMatching(new RegExp(`^toolu_(.*_)?${at}$`)) as string));
      expect(answer.additional_kwargs["deputy_invalid_tool_calls"]).toBeUndefined();
    },
  );

  it("are sent back under our ids, each result with its error mark, results in front of what a user said", async () => {
    const script = ['& call bash {"command":"one"}', '& call bash {"command":"two"}', "say ok"];
    const first = await ask(script);
    const [one, two] = first.tool_calls ?? [];
    const results = [
      new ToolMessage({ content: "1", name: "bash", tool_call_id: one?.id ?? "" }),
      new ToolMessage({ content: "Error: no", name: "bash", tool_call_id: two?.id ?? "", status: "error" }),
      new HumanMessage("<reminder>be brief</reminder>"),
    ];
    expect((await ask(script, {}, [first, ...results])).text).toBe("ok");
    expect(server.requests[1]?.messages.slice(1)).toEqual([
      {
        role: "assistant",
        content: [
          { type: "tool_use", id: one?.id, name: "bash", input: { command: "one" } },
          { type: "tool_use", id: two?.id, name: "bash", input: { command: "two" } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: one?.id, content: [{ type: "text", text: "1" }] },
          { type: "tool_result", tool_use_id: two?.id, content: [{ type: "text", text: "Error: no" }], is_error: true },
          { type: "text", text: "<reminder>be brief</reminder>" },
        ],
      },
    ]);
  });

  it.each([
    ['raw bash {"command": "ls', "not one JSON object"],
    ["raw bash [1]", "not one JSON object"],
    ["raw no.such/tool {}", "illegal"],
  ])("that may not run keep empty arguments and say why: %j", async (step, why) => {
    const answer = await ask([step]);
    const [call] = answer.tool_calls ?? [];
    expect(call?.args).toEqual({});
    const invalid = answer.additional_kwargs["deputy_invalid_tool_calls"] as Record<string, { error: string }>;
    expect(invalid[call?.id ?? ""]?.error).toContain(why);
  });

  it("do not run with arguments that the output limit cut", async () => {
    const answer = await ask(["fail length", 'call bash {"command":"rm -rf build && make all"}']);
    const [call] = answer.tool_calls ?? [];
    expect(answer.response_metadata["finish_reason"]).toBe("length");
    expect(call?.args).toEqual({});
    expect(answer.additional_kwargs["deputy_invalid_tool_calls"]).toMatchObject({
      [call?.id ?? ""]: { error: expect.stringContaining("cut") as string },
    });
  });

  it("of earlier turns keep their tools declared when none is left, and none may be called", async () => {
    const call = { id: "call_1", name: "gone", args: {}, type: "tool_call" as const };
    const since = [new AIMessage({ content: "", tool_calls: [call] }), new ToolMessage("done", "call_1")];
    await model.generate({ ...requestOf(["say a", "say b"], since), tools: [] }, {});
    expect(server.requests[0]).toMatchObject({ tools: [{ name: "gone" }], tool_choice: { type: "none" } });
  });

  it("with a schema Anthropic refuses are told of, not left out in silence", async () => {
    const either = [{ name: "either", description: "", parameters: { anyOf: [{ type: "object" }] } }];
    const failure = await failureOf(model.generate({ ...requestOf(["say a"]), tools: either }, {}));
    expect(failure.message).toContain("'either'");
    expect(classifyModelError(failure)).toBe("generic");
  });
});

describe("failures are failures, never answers", () => {
  it.each([
    ["fail cut", "truncated"],
    ["fail empty", "empty"],
    ["fail error", "stream_error"],
  ] as const)("%s is %s", async (step, reason) => {
    const failure = await failureOf(ask([step, "say one two three four"]));
    expect([failure.reason, failure.partialText]).toEqual([reason, reason === "empty" ? "" : "one two "]);
  });

  it("an overloaded provider is busy in the middle of a stream, and passing before it", async () => {
    const inside = await failureOf(ask(["fail error", "say one two"]));
    expect(inside).toMatchObject({ code: "overloaded_error", message: "Overloaded" });
    expect(classifyModelError(inside)).toBe("busy");
    const before = await failureOf(ask(["fail 529", "say one two"]));
    expect(before).toMatchObject({ reason: "provider", status: 529, code: "overloaded_error" });
    expect(classifyModelError(before)).toBe("transient");
  });

  it("a connection reset in the middle of the answer is a broken stream", async () => {
    const failure = await failureOf(ask(["quirk reset", "fail cut", "say one two three four"]));
    expect(failure).toMatchObject({ reason: "truncated", partialText: "one two " });
  });

  it("silence in the middle of an answer is idle, and aborts the provider's request", async () => {
    const impatient = modelOf({ modelIdleMs: 200 });
    const failure = await failureOf(impatient.generate(requestOf(["fail stall", "say one two"]), {}));
    expect(failure.reason).toBe("idle");
    await vi.waitFor(() => expect(server.aborted()).toBe(1), { timeout: 2_000 });
  });

  it.each([
    [429, "rate_limit_error", "transient", 7_000],
    [401, "authentication_error", "auth", undefined],
    [400, "invalid_request_error", "generic", undefined],
    [500, "api_error", "transient", undefined],
  ] as const)("%i carries its status, the provider's word and the wait, and is asked once", async (...expected) => {
    const [status, code, kind, retryAfterMs] = expected;
    const wait = retryAfterMs === undefined ? "" : ` 9 retry-after ${retryAfterMs / 1_000}`;
    const failure = await failureOf(ask([`fail ${status}${wait}`, "say no"]));
    expect(failure).toMatchObject({ reason: "provider", status, code, retryAfterMs });
    expect(classifyModelError(failure)).toBe(kind);
    expect(server.requests.length).toBe(1);
  });

  it("no listener is a provider failure without a status", async () => {
    await server.close();
    expect(await failureOf(ask(["say hello"]))).toMatchObject({ reason: "provider", status: undefined });
  });
});

it("a refusal is an answer that says so, with the finish reason of a refusal", async () => {
  const answer = await ask(["quirk refusal", "say never"]);
  expect([answer.text, answer.response_metadata["finish_reason"]]).toEqual([REFUSAL_TEXT, "content_filter"]);
});

it("an abort ends the provider's request and is not a model failure", async () => {
  const controller = new AbortController();
  const callbacks = [{ handleLLMNewToken: () => controller.abort(new Error("cancelled by user")) }];
  const work = ask(["delay 50", "say one two three four five six"], { signal: controller.signal, callbacks });
  await expect(work).rejects.toThrow("cancelled by user");
  await vi.waitFor(() => expect(server.aborted()).toBe(1), { timeout: 2_000 });
});

it("a configuration that the adapter knows to be refused is found when the model is made", () => {
  const budget = { thinking: true, thinkingBudgetTokens: 2_000 };
  expect(() => modelOf({ ...budget, model: "claude-opus-4-7" })).toThrow(/^models: "claude": .*adaptive/);
  expect(() => modelOf({ model: "claude-sonnet-5", temperature: 0.5 })).toThrow("temperature");
  expect(() => modelOf({ ...budget, model: "claude-sonnet-4-5", temperature: 0.5 })).not.toThrow();
});
