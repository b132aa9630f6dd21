import {
  AIMessage,
  type AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CALL_ID_PATTERN } from "../../../src/agent/models/call-id.ts";
import { type ChatModel, ModelFailure } from "../../../src/agent/models/model.ts";
import { HEADER_WAITS_MAX, HeaderGates } from "../../../src/agent/models/header-gate.ts";
import { createOpenAiModel } from "../../../src/agent/models/openai.ts";
import { type ModelServer, startModelServer } from "../../support/model-server.ts";

let server: ModelServer;
let model: ChatModel;
/** Gives up on silence soon; the other one waits longer than a loaded machine pauses. */
let impatient: ChatModel;
let ids = 0;

beforeEach(async () => {
  server = await startModelServer();
  const options = {
    name: "openai",
    apiKey: "k",
    baseUrl: server.url,
    model: "test-model",
    newId: () => `m-${(ids += 1)}`,
    random: Math.random,
    now: Date.now,
    gates: new HeaderGates(),
    fetch: ((input, init) => fetch(input, init)) satisfies typeof fetch,
  };
  model = createOpenAiModel({ ...options, modelIdleMs: 10_000 });
  impatient = createOpenAiModel({ ...options, modelIdleMs: 200 });
});

afterEach(async () => {
  await server.close();
  expect(server.violations).toEqual([]);
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
  const answer = await ask(["usage 11 3", "say grüße aus der ferne"], { callbacks });
  expect(answer).toBeInstanceOf(AIMessage);
  expect(answer.text).toBe("grüße aus der ferne");
  expect(answer.id).toMatch(/^m-\d+$/);
  expect(answer.response_metadata).toEqual({ finish_reason: "stop", model_name: "test-model" });
  expect(answer.usage_metadata).toMatchObject({ input_tokens: 11, output_tokens: 3, total_tokens: 14 });
  expect(seen.filter((chunk) => chunk.text !== "").map((chunk) => chunk.text)).toEqual([
    "grüße ",
    "aus ",
    "der ",
    "ferne",
  ]);
  expect(new Set(seen.filter((chunk) => chunk.text !== "").map((chunk) => chunk.id))).toEqual(new Set([answer.id]));
  expect(server.requests[0]).toMatchObject({ stream: true, stream_options: { include_usage: true } });
});

it("leaves usage missing when the provider sends none, and asks no tokenizer (R67)", async () => {
  const fetched = vi.spyOn(globalThis, "fetch");
  const answer = await ask(["quirk no-usage", "say hello"]);
  expect(answer.usage_metadata).toBeUndefined();
  expect(fetched.mock.calls.map(([url]) => new Request(url).url)).toEqual([`${server.url}/chat/completions`]);
  fetched.mockRestore();
});

const parallel = ['& call bash {"command":"echo {}"}', '& call bash {"command":"two"}', '& call ls {"path":"/"}'];

describe.each(["no-role", "shared-index", "missing-index", "glued", "repeat-ids", "split-frames", "no-done"])(
  "a provider with %s",
  (quirk) => {
    it("still yields every call once, strictly parsed, under ids of ours (R185)", async () => {
      const answer = await ask([`quirk ${quirk}`, ...parallel]);
      expect(answer.tool_calls?.map(({ name, args }) => ({ name, args }))).toEqual([
        { name: "bash", args: { command: "echo {}" } },
        { name: "bash", args: { command: "two" } },
        { name: "ls", args: { path: "/" } },
      ]);
      const minted = answer.tool_calls?.map((call) => call.id ?? "") ?? [];
      expect(new Set(minted).size).toBe(3);
      for (const id of minted) expect(id).toMatch(CALL_ID_PATTERN);
      expect(answer.additional_kwargs.deputy_invalid_tool_calls).toBeUndefined();
      expect(answer.usage_metadata).toBeDefined();
    });
  },
);

it("mints new ids when the provider repeats its own, keeps theirs aside and sends ours back", async () => {
  const script = [
    "quirk repeat-ids",
    'call bash {"command":"one"}',
    "quirk repeat-ids",
    'call bash {"command":"two"}',
    "say ok",
  ];
  const first = await ask(script);
  const done = new ToolMessage({ content: "1", name: "bash", tool_call_id: first.tool_calls?.[0]?.id ?? "" });
  const second = await ask(script, {}, [first, done]);
  expect(second.id).not.toBe(first.id);
  expect(second.tool_calls?.[0]?.id).not.toBe(first.tool_calls?.[0]?.id);
  expect(first.additional_kwargs.deputy_provider_call_ids).toEqual({ [first.tool_calls?.[0]?.id ?? ""]: "call_0" });
  expect(server.requests[1]?.messages.slice(-2)).toEqual([
    {
      role: "assistant",
      content: null,
      tool_calls: [
        { id: done.tool_call_id, type: "function", function: { name: "bash", arguments: '{"command":"one"}' } },
      ],
    },
    { role: "tool", content: "1", tool_call_id: done.tool_call_id },
  ]);
});

describe("calls that may not run", () => {
  const invalidOf = (answer: AIMessage) =>
    (answer.additional_kwargs.deputy_invalid_tool_calls ?? {}) as Record<string, { raw: string; error: string }>;

  it.each([
    ['raw bash {"command": "ls', "not one JSON object"],
    ["raw bash [1]", "not one JSON object"],
    ["raw bash", "empty"],
    ['raw bash {"a":1} trailing', "not one JSON object"],
    ["raw no.such/tool {}", "illegal"],
  ])("keeps %j with empty arguments and says why", async (step, why) => {
    const answer = await ask([step]);
    const call = answer.tool_calls?.[0];
    expect(call?.args).toEqual({});
    expect(call?.name).toBe(why === "illegal" ? "unknown_tool" : "bash");
    expect(invalidOf(answer)[call?.id ?? ""]?.error).toContain(why);
  });

  it("does not run arguments that the output limit cut, however complete a lenient parser makes them", async () => {
    const answer = await ask(["fail length", 'call bash {"command":"rm -rf build && make all"}']);
    const call = answer.tool_calls?.[0];
    expect(answer.response_metadata.finish_reason).toBe("length");
    expect(call?.args).toEqual({});
    expect(invalidOf(answer)[call?.id ?? ""]).toMatchObject({ error: expect.stringContaining("cut") as string });
  });

  it("bounds the raw text it keeps", async () => {
    const answer = await ask([`raw bash ${"x".repeat(5_000)}`]);
    expect(invalidOf(answer)[answer.tool_calls?.[0]?.id ?? ""]?.raw.length).toBe(2_000);
  });
});

describe("failures are failures, never answers", () => {
  it.each([
    ["fail cut", "truncated"],
    ["fail empty", "empty"],
    ["fail error", "stream_error"],
  ] as const)("%s is %s", async (step, reason) => {
    expect((await failureOf(ask([step, "say one two three four"]))).reason).toBe(reason);
  });

  it("a connection reset in the middle of the answer is a failure", async () => {
    const failure = await failureOf(ask(["quirk reset", "fail cut", "say one two three four"]));
    expect(["provider", "truncated"]).toContain(failure.reason);
  });

  it("silence in the middle of an answer is idle, and aborts the provider's request", async () => {
    const failure = await failureOf(impatient.generate(requestOf(["fail stall", "say one two"]), {}));
    expect(failure.reason).toBe("idle");
    await vi.waitFor(() => expect(server.aborted()).toBe(1), { timeout: 2_000 });
  });

  it("carries the status and the wait a provider asks for", async () => {
    const failure = await failureOf(ask(["fail 429 9 retry-after 7", "say no"]));
    expect(failure).toMatchObject({ reason: "provider", status: 429, retryAfterMs: 7_000 });
    expect(server.requests.length).toBe(1);
  });

  it("no listener is a provider failure without a status", async () => {
    await server.close();
    const failure = await failureOf(ask(["say hello"]));
    expect(failure).toMatchObject({ reason: "provider", status: undefined });
  });

  it("keeps the status of an error inside the stream", async () => {
    expect((await failureOf(ask(["fail error", "say one two"]))).status).toBe(529);
  });
});

it("an abort ends the provider's request and is not a model failure", async () => {
  const controller = new AbortController();
  const callbacks = [{ handleLLMNewToken: () => controller.abort(new Error("cancelled by user")) }];
  const work = ask(["delay 50", "say one two three four five six"], { signal: controller.signal, callbacks });
  await expect(work).rejects.toThrow("cancelled by user");
  await vi.waitFor(() => expect(server.aborted()).toBe(1), { timeout: 2_000 });
});

describe("while five others wait for headers (P8)", () => {
  const serialised = vi.fn<() => void>();
  /** Tells when it is written into a body. */
  class WatchedText extends String {
    toJSON(): string {
      serialised();
      return this.toString();
    }
  }

  it("a request has no body yet, and its wait is not taken for the provider's silence", async () => {
    serialised.mockClear();
    const gates = new HeaderGates();
    const gated = createOpenAiModel({
      name: "openai",
      apiKey: "k",
      baseUrl: server.url,
      modelIdleMs: 200,
      newId: () => `m-${(ids += 1)}`,
      random: Math.random,
      now: Date.now,
      gates,
      fetch: (input, init) => {
        expect(init?.body).toContain("here it is");
        return fetch(input, init);
      },
    });
    const places = await Promise.all(Array.from({ length: HEADER_WAITS_MAX }, () => gates.enter("", undefined)));
    const parameters = { type: "object", description: new WatchedText("here it is") };
    const answer = gated.generate(
      { ...requestOf(["say done"]), tools: [{ name: "bash", description: "run", parameters }] },
      {},
    );
    await new Promise((next) => setTimeout(next, 600));
    expect(serialised).not.toHaveBeenCalled();
    for (const leave of places) leave();
    expect((await answer).text).toBe("done");
    expect(serialised).toHaveBeenCalled();
    expect(gates.size).toBe(0);
  });
});
