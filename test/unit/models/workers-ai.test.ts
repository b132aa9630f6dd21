/** The real adapter in front of a binding that answers as Workers AI's documentation says. */
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { classifyModelError } from "../../../src/domain/model-errors/classify-model-error.ts";
import { createModelCatalog } from "../../../src/agent/models/catalog.ts";
import { CALL_ID_PATTERN } from "../../../src/agent/models/call-id.ts";
import { ModelFailure } from "../../../src/agent/models/model.ts";
import { type DeputyConfigInput, parseDeputyConfig } from "../../../src/config.ts";
import { FakeWorkersAi, type WorkersAiAnswer } from "../../support/fake-workers-ai.ts";

const MODEL = "@cf/openai/gpt-oss-120b";

function modelOver(binding: FakeWorkersAi | undefined, options: object = {}, modelIdleMs = 5_000) {
  const models = [{ name: "edge", provider: "workers-ai", model: MODEL, ...options }] as DeputyConfigInput["models"];
  return createModelCatalog({
    models: parseDeputyConfig({ models }).models,
    credentials: { workersAi: binding },
    modelIdleMs,
    newId: () => "m-1",
    random: Math.random,
    now: Date.now,
  }).find();
}

const tools = [{ name: "bash", description: "run", parameters: { type: "object", properties: {} } }];
const request = { messages: [new HumanMessage("hi")], tools, thinking: true };

const ask = (answer: WorkersAiAnswer, options?: object, modelIdleMs?: number): Promise<AIMessage> =>
  modelOver(new FakeWorkersAi(answer), options, modelIdleMs)!.generate(request, {});

async function failureOf(work: Promise<unknown>): Promise<ModelFailure> {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ModelFailure);
  return error as ModelFailure;
}

const data = (...events: object[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
const DONE = "data: [DONE]\n\n";
const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
const openAi = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});

describe("the model", () => {
  it("is there with its binding only; without one it is passed over, as without credentials (R166)", () => {
    expect(modelOver(new FakeWorkersAi())).toMatchObject({ name: "edge", provider: "workers-ai", thinking: false });
    expect(modelOver(undefined)?.name).toBe("scripted");
  });

  it("gives the binding what it takes: no null content, no word of OpenAI's alone, a signal", async () => {
    const binding = new FakeWorkersAi(data({ response: "ok" }) + DONE);
    const call = { id: "call_1", name: "bash", args: { a: 1 }, type: "tool_call" as const };
    const history = [new AIMessage({ content: "", tool_calls: [call] }), new ToolMessage("1", "call_1")];
    const messages = [...request.messages, ...history];
    await modelOver(binding, { max_output_tokens: 9, temperature: 0.5 })!.generate({ ...request, messages }, {});
    const [{ model, inputs, signal }] = binding.runs as [FakeWorkersAi["runs"][number]];
    expect([model, signal?.aborted]).toEqual([MODEL, false]);
    expect(Object.keys(inputs).sort()).toEqual(["max_tokens", "messages", "stream", "temperature", "tools"]);
    expect(inputs).toMatchObject({ stream: true, max_tokens: 9, temperature: 0.5 });
    expect((inputs["messages"] as object[])[1]).toMatchObject({ role: "assistant", content: "" });
  });

  it("thinks with the effort of its configuration, with its flag and when asked (R186)", async () => {
    const binding = new FakeWorkersAi(...Array.from({ length: 3 }, () => data({ response: "ok" }) + DONE));
    const model = modelOver(binding, { thinking: true, reasoning_effort: "low", reasoning_effort_off: "none" })!;
    await model.generate(request, {});
    await model.generate({ ...request, thinking: false }, {});
    await modelOver(binding)!.generate(request, {});
    expect(binding.runs.map(({ inputs }) => inputs["reasoning_effort"])).toEqual(["low", "none", undefined]);
  });
});

describe("its own stream form", () => {
  it("is text, a whole call, and usage at the end; ids are ours", async () => {
    const calls = [
      { name: "bash", arguments: { command: "ls" } },
      { name: "bash", arguments: { command: "pwd" } },
    ];
    const body = data(
      { response: "gr" },
      { response: "üße" },
      { response: 4 },
      { tool_calls: calls, response: "" },
      { response: null, usage },
    );
    const answer = await ask(body + DONE);
    expect(answer.content).toBe("grüße4");
    expect(answer.id).toBe("m-1");
    expect(answer.tool_calls?.map(({ name, args }) => [name, args])).toEqual([
      ["bash", { command: "ls" }],
      ["bash", { command: "pwd" }],
    ]);
    for (const { id } of answer.tool_calls ?? []) expect(id).toMatch(CALL_ID_PATTERN);
    expect(answer.response_metadata["finish_reason"]).toBe("tool_calls");
    expect(answer.usage_metadata).toMatchObject({ input_tokens: 7, output_tokens: 3, total_tokens: 10 });
  });

  it("that ends without its mark is a broken stream, however whole it looks", async () => {
    const failure = await failureOf(ask(data({ response: "half of" }, { response: "", usage })));
    expect(failure).toMatchObject({ reason: "truncated", partialText: "half of" });
    expect((await ask(data({ response: "whole" }, { response: "", finish_reason: "stop" }))).text).toBe("whole");
  });

  it("with arguments that are no JSON object does not run them", async () => {
    const answer = await ask(data({ tool_calls: [{ name: "bash", arguments: '{"command": "l' }] }) + DONE);
    expect(answer.tool_calls).toMatchObject([{ name: "bash", args: {} }]);
    expect(Object.values(answer.additional_kwargs["deputy_invalid_tool_calls"] as object)).toHaveLength(1);
  });
});

describe("the form of OpenAI", () => {
  it("is text, calls in pieces, thinking beside the answer, and a finish reason", async () => {
    const piece = (fields: object) => ({ tool_calls: [{ index: 0, ...fields }] });
    const body = data(
      openAi({ role: "assistant", reasoning_content: "hm" }),
      openAi({ content: "so" }),
      openAi(piece({ id: "x", function: { name: "bash", arguments: '{"command"' } })),
      openAi(piece({ function: { arguments: ':"ls"}' } })),
      openAi({}, "tool_calls"),
      { choices: [], usage },
    );
    const answer = await ask(body + DONE);
    expect([answer.content, answer.additional_kwargs["reasoning_content"]]).toEqual(["so", "hm"]);
    expect(answer.tool_calls).toMatchObject([{ name: "bash", args: { command: "ls" } }]);
    expect(answer.usage_metadata).toMatchObject({ input_tokens: 7, output_tokens: 3 });
  });

  it("without a finish reason is a broken stream, mark or not", async () => {
    expect((await failureOf(ask(data(openAi({ content: "half" })) + DONE))).reason).toBe("truncated");
  });
});

describe("an answer that comes whole although a stream was asked for", () => {
  const message = { role: "assistant", content: "whole" };
  it.each([
    [{ response: "whole", usage }, "stop"],
    [{ choices: [{ index: 0, message, finish_reason: "length" }], usage }, "length"],
  ])("%j", async (body, finish) => {
    const answer = await ask(body);
    expect([answer.text, answer.response_metadata["finish_reason"]]).toEqual(["whole", finish]);
    expect(answer.usage_metadata).toMatchObject({ input_tokens: 7 });
  });
});

describe("failures", () => {
  it.each([
    ["3040: Capacity temporarily exceeded, please try again.", 429, "workers_ai_3040", "transient"],
    ["AiError: 3040: No more data centers to forward the request to", 429, "workers_ai_3040", "transient"],
    ["3036: You have used up your daily free allocation of 10,000 neurons", 429, "insufficient_quota", "quota"],
    ["5007: No such model @cf/x or task", 400, "workers_ai_5007", "generic"],
    ["5006: Error: required properties at '/' are 'messages'", 400, "workers_ai_5006", "generic"],
    ["3023: Service unavailable for account", 403, "workers_ai_3023", "auth"],
    ["3007: Request timeout", 408, "workers_ai_3007", "transient"],
    ["3006: Request is too large", 413, "workers_ai_3006", "generic"],
    ["7777: nobody knows", undefined, "workers_ai_7777", "transient"],
    ["Network connection lost.", undefined, undefined, "transient"],
  ])("%s", async (message, status, code, kind) => {
    const failure = await failureOf(ask(new Error(message)));
    expect(failure).toMatchObject({ reason: "provider", status, code });
    expect(failure.message).toContain(message.slice(0, 20));
    expect(classifyModelError(failure)).toBe(kind);
  });

  it("inside a stream are failures, in both forms of them", async () => {
    const own = await failureOf(ask(data({ response: "a" }, { errors: [{ code: 3040, message: "at capacity" }] })));
    expect([own.reason, own.partialText, classifyModelError(own)]).toEqual(["stream_error", "a", "busy"]);
    const theirs = await failureOf(ask(data({ error: { message: "overloaded", code: 503 } })));
    expect(theirs).toMatchObject({ reason: "stream_error", status: 503 });
  });

  it("silence is idle, and aborts the run", async () => {
    const silent = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) });
    const binding = new FakeWorkersAi(silent);
    const failure = await failureOf(modelOver(binding, {}, 50)!.generate(request, {}));
    expect([failure.reason, binding.runs[0]?.signal?.aborted]).toEqual(["idle", true]);
  });

  it("a cancel is none", async () => {
    const controller = new AbortController();
    const silent = new ReadableStream<Uint8Array>({
      pull: () => {
        controller.abort(new Error("cancelled"));
        return new Promise(() => {});
      },
    });
    const work = modelOver(new FakeWorkersAi(silent))!.generate(request, { signal: controller.signal });
    await expect(work).rejects.toThrow("cancelled");
  });
});
