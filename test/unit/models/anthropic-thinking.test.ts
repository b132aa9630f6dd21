import { AIMessage, type AIMessageChunk, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { repairMessages } from "../../../src/agent/hooks/request-repair.ts";
import { type AnthropicModelOptions, createAnthropicModel } from "../../../src/agent/models/anthropic.ts";
import { HeaderGates } from "../../../src/agent/models/header-gate.ts";
import type { ChatModel } from "../../../src/agent/models/model.ts";
import { createOpenAiModel } from "../../../src/agent/models/openai.ts";
import { copyMessage, toMessage } from "../../../src/agent/thread-state/message-forms.ts";
import { toAnthropicFrames, THINKING_MARK } from "../../support/anthropic-frames.ts";
import { type AnthropicServer, startAnthropicServer } from "../../support/anthropic-server.ts";
import { startModelServer } from "../../support/model-server.ts";
import { answerFromScript } from "../../../src/agent/models/script-answer.ts";

let server: AnthropicServer;
let ids = 0;

const common = {
  name: "claude",
  apiKey: "k",
  modelIdleMs: 10_000,
  newId: () => `m-${(ids += 1)}`,
  random: Math.random,
  now: Date.now,
  gates: new HeaderGates(),
  fetch: ((input, init) => fetch(input, init)) satisfies typeof fetch,
};

const modelOf = (options: Partial<AnthropicModelOptions> = {}): ChatModel =>
  createAnthropicModel({ ...common, baseUrl: server.url, model: "claude-test", thinking: true, ...options });

beforeEach(async () => {
  server = await startAnthropicServer();
});

afterEach(async () => {
  await server.close();
  expect(server.violations).toEqual([]);
});

const tools = [{ name: "bash", description: "run", parameters: { type: "object", properties: {} } }];
const promptOf = (lines: string[]) => new HumanMessage(lines.map((line) => `@ ${line}`).join("\n"));

function ask(model: ChatModel, messages: BaseMessage[], thinking = true, config = {}): Promise<AIMessage> {
  return model.generate({ messages, tools, thinking }, config);
}

/** As a checkpoint gives it back. */
const restored = (message: BaseMessage) => toMessage(JSON.parse(JSON.stringify(message)) as never);

const resultOf = (answer: AIMessage) => new ToolMessage("42", answer.tool_calls?.[0]?.id ?? "");

describe("whether a request thinks (R186)", () => {
  it.each([
    [{ thinkingBudgetTokens: 2_000 }, true, { type: "enabled", budget_tokens: 2_000 }, undefined],
    [{ reasoningEffort: "high" }, true, { type: "adaptive" }, { effort: "high" }],
    [{}, true, { type: "adaptive" }, undefined],
    [{}, false, { type: "disabled" }, undefined],
    [{ thinking: false }, true, { type: "disabled" }, undefined],
    [{ alwaysThinks: true }, false, undefined, undefined],
    [{ alwaysThinks: true }, true, { type: "adaptive" }, undefined],
  ] as const)("%j, asked: %s", async (options, thinking, expected, effort) => {
    const answer = await ask(modelOf(options), [promptOf(["say hello"])], thinking);
    expect(answer.text).toBe("hello");
    expect(server.requests[0]!.thinking).toEqual(expected);
    expect(server.requests[0]!["output_config"]).toEqual(effort);
    expect("reasoning_content" in answer.additional_kwargs).toBe(
      expected?.type === "adaptive" || expected?.type === "enabled",
    );
  });

  it("a temperature is sent only while it does not", async () => {
    const model = modelOf({ temperature: 0.5 });
    await ask(model, [promptOf(["say a"])], true);
    await ask(model, [promptOf(["say b"])], false);
    expect(server.requests.map((request) => request["temperature"])).toEqual([undefined, 0.5]);
  });

  it("openai is told how hard to think, and how hard not to, only with the flag", async () => {
    const openai = await startModelServer();
    const flagged = { thinking: true, reasoningEffort: "high", reasoningEffortOff: "none", temperature: 0.5 };
    const make = (options: object) => createOpenAiModel({ ...common, baseUrl: openai.url, model: "m", ...options });
    for (const thinking of [true, false]) await ask(make(flagged), [promptOf(["say a"])], thinking);
    await ask(make({ thinking: true }), [promptOf(["say a"])]);
    await ask(make({ reasoningEffortOff: "none" }), [promptOf(["say a"])]);
    const sent = openai.requests as unknown as readonly Record<string, unknown>[];
    expect(sent.map((body) => [body["reasoning_effort"], body["temperature"]])).toEqual([
      ["high", undefined],
      ["none", 0.5],
      ["medium", undefined],
      [undefined, undefined],
    ]);
    await openai.close();
  });
});

describe("thinking and the answer (R186)", () => {
  it("is streamed and stored beside the answer, never in it", async () => {
    const seen: AIMessageChunk[] = [];
    const callbacks = [
      {
        handleLLMNewToken: (...args: unknown[]) => {
          seen.push((args[5] as { chunk: { message: AIMessageChunk } }).chunk.message);
        },
      },
    ];
    const answer = await ask(modelOf(), [promptOf(["quirk late-thinking", "say hello you"])], true, { callbacks });
    expect(answer.content).toBe("hello you");
    expect(answer.additional_kwargs["reasoning_content"]).toContain(THINKING_MARK);
    expect(seen.map((chunk) => chunk.text).join("")).toBe("hello you");
    expect(seen.map((chunk) => (chunk.additional_kwargs["reasoning_content"] ?? "") as string).join("")).toBe(
      answer.additional_kwargs["reasoning_content"],
    );
  });

  it("alone is no answer", async () => {
    await expect(ask(modelOf(), [promptOf(["fail empty", "say never"])])).rejects.toMatchObject({ reason: "empty" });
  });
});

describe("signed thinking of a tool turn", () => {
  const script = promptOf(['call bash {"command":"one"}', 'call bash {"command":"two"}', "say {{result:2}}"]);
  const thoughtsIn = (at: number) =>
    server.requests[at]!.messages.map(({ content }) =>
      typeof content === "string" ? [] : content.filter(({ type }) => type.includes("thinking")),
    );

  it.each([[], ["quirk redacted"]])(
    "goes back as it came, through storage and repair, until the turn is over: %s",
    async (...quirks) => {
      const model = modelOf();
      const prompt = quirks.length === 0 ? script : promptOf([...quirks, 'call bash {"command":"one"}', "say done"]);
      const messages: BaseMessage[] = [prompt];
      let answer = await ask(model, messages);
      while (answer.tool_calls?.length) {
        messages.push(restored(answer), restored(resultOf(answer)));
        answer = await ask(model, [...repairMessages([...messages])]);
      }
      expect(answer.text).toBe(quirks.length === 0 ? "42" : "done");
      const last = server.requests.length - 1;
      expect(server.requests[last]!.thinking).toEqual({ type: "adaptive" });
      expect(thoughtsIn(last).flat().length).toBe(quirks.length === 0 ? 2 : 2);
      expect(server.requests[last]!.messages[1]!.content).toMatchObject([
        { type: quirks.length === 0 ? "thinking" : "redacted_thinking" },
        { type: quirks.length === 0 ? "tool_use" : "thinking" },
        ...(quirks.length === 0 ? [] : [{ type: "tool_use" }]),
      ]);
    },
  );

  it("survives a repair that changes the answer it belongs to", async () => {
    const model = modelOf();
    const first = await ask(model, [promptOf(['& call bash {"command":"one"}', '& call bash {"command":"two"}'])]);
    const repaired = repairMessages([script, first, resultOf(first)]);
    expect(repaired.length).toBe(4);
    await ask(model, [...repaired]);
    expect(thoughtsIn(1)[1]).toHaveLength(1);
  });

  it.each([
    ["another model", (answer: AIMessage) => answer, { model: "claude-other" }],
    ["a text that was changed", (answer: AIMessage) => changed(answer, "cut"), {}],
    ["a text that is gone", (answer: AIMessage) => changed(answer, undefined), {}],
  ] as const)("is dropped for %s, and the turn goes on without thinking", async (_what, change, options) => {
    const first = await ask(modelOf(), [script]);
    await ask(modelOf(options), [script, change(first), resultOf(first)]);
    expect(server.requests[1]!.thinking).toEqual({ type: "disabled" });
    expect(thoughtsIn(1).flat()).toEqual([]);
    const next = [script, change(first), resultOf(first), new AIMessage("so"), promptOf(["say again"])];
    await ask(modelOf(options), next);
    expect(server.requests[2]!.thinking).toEqual({ type: "adaptive" });
  });

  const changed = (answer: AIMessage, reasoning_content: string | undefined) =>
    copyMessage(answer, { additional_kwargs: { ...answer.additional_kwargs, reasoning_content } });

  it("is dropped when thinking is off, and when the provider did not sign it", async () => {
    const first = await ask(modelOf(), [script]);
    await ask(modelOf(), [script, first, resultOf(first)], false);
    expect(thoughtsIn(1).flat()).toEqual([]);
    const unsigned = await ask(modelOf(), [promptOf(["quirk unsigned", 'call bash {"command":"one"}'])]);
    expect(unsigned.additional_kwargs["deputy_thinking"]).toBeUndefined();
    await ask(modelOf(), [script, unsigned, resultOf(unsigned)]);
    expect(server.requests[3]!.thinking).toEqual({ type: "disabled" });
  });

  it("says nothing to another provider", async () => {
    const openai = await startModelServer();
    const first = await ask(modelOf(), [script]);
    const model = createOpenAiModel({ ...common, baseUrl: openai.url, model: "m", thinking: true });
    await ask(model, [script, first, resultOf(first)]);
    expect(JSON.stringify(openai.requests)).not.toMatch(new RegExp(`${THINKING_MARK}|signature-`));
    expect(openai.violations).toEqual([]);
    await openai.close();
  });
});

it("an answer is the same however its stream is cut into pieces", async () => {
  const script = 'quirk redacted\n@ say grüße, 世界\n@ & call bash {"command":"echo ä"}\n@ & call ls {}';
  const frames = [
    ...toAnthropicFrames(answerFromScript([{ role: "human", text: `@ ${script}` }]), {
      model: "claude-test",
      thinks: true,
      quirks: new Set(["redacted"]),
      failure: undefined,
      issue: () => {},
    }),
  ].join("");
  const bytes = new TextEncoder().encode(frames);
  const read = async (cuts: readonly number[]) => {
    const ends = [...cuts.toSorted((a, b) => a - b), bytes.length];
    const pieces = ends.map((end, at) => bytes.slice(ends[at - 1] ?? 0, end));
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const piece = pieces.shift();
        if (piece === undefined) controller.close();
        else if (piece.length > 0) controller.enqueue(piece);
        else controller.enqueue(new Uint8Array());
      },
    });
    const answer = new Response(body, { headers: { "content-type": "text/event-stream" } });
    const model = modelOf({ fetch: () => Promise.resolve(answer), newId: () => "m", random: () => 0.5 });
    return ask(model, [new HumanMessage("hi")]);
  };
  const whole = JSON.stringify(await read([]));
  expect(whole).toContain("世界");
  const cuts = fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(cuts, async (at) => {
      expect(JSON.stringify(await read(at))).toBe(whole);
    }),
    { numRuns: 60 },
  );
});
