import "../../../src/async-context.ts";
import { HumanMessage } from "@langchain/core/messages";
import { expect, it } from "vitest";
import { createModelCatalog } from "../../../src/agent/models/catalog.ts";
import { parseDeputyConfig } from "../../../src/config.ts";

const encode = new TextEncoder();

function answerOf(frames: string[], signals: AbortSignal[] = []): typeof fetch {
  return (_input, init) => {
    if (init?.signal) signals.push(init.signal);
    const left = [...frames];
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const frame = left.shift();
        if (frame === undefined) controller.close();
        else if (frame === "stall") return new Promise(() => {});
        else controller.enqueue(encode.encode(frame));
        return undefined;
      },
    });
    return Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } }));
  };
}

const modelOf = (fetchLike: typeof fetch, modelIdleMs = 1_000) =>
  createModelCatalog({
    models: parseDeputyConfig({}).models,
    credentials: { openaiApiKey: "k" },
    modelIdleMs,
    newId: () => crypto.randomUUID(),
    random: Math.random,
    now: Date.now,
    fetch: fetchLike,
  }).find();

const request = { messages: [new HumanMessage("hi")], tools: [] };
const event = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: "x", model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;

it("a generation through the real adapter runs in workerd, normalised, without a tokenizer", async () => {
  const call = { index: 0, id: "call_0", function: { name: "bash", arguments: '{"command":"ls"}{"command":"pwd"}' } };
  const frames = [
    event({ content: "hel" }),
    event({ content: "lo" }),
    event({ tool_calls: [call] }),
    event({}, "tool_calls"),
  ];
  const answer = await modelOf(answerOf(frames))?.generate(request, {});
  expect(answer?.text).toBe("hello");
  expect(answer?.tool_calls?.map((one) => one.args)).toEqual([{ command: "ls" }, { command: "pwd" }]);
  expect(answer?.usage_metadata).toBeUndefined();
});

it("silence aborts the provider's request in workerd too", async () => {
  const signals: AbortSignal[] = [];
  const work = modelOf(answerOf([event({ content: "half" }), "stall"], signals), 50)?.generate(request, {});
  await expect(work).rejects.toMatchObject({ name: "ModelFailure", reason: "idle" });
  expect(signals.map((signal) => signal.aborted)).toEqual([true]);
});

it("cancel aborts the provider's request in workerd too", async () => {
  const signals: AbortSignal[] = [];
  const controller = new AbortController();
  const callbacks = [{ handleLLMNewToken: () => controller.abort(new Error("cancelled")) }];
  const work = modelOf(answerOf([event({ content: "half" }), "stall"], signals), 60_000)?.generate(request, {
    signal: controller.signal,
    callbacks,
  });
  await expect(work).rejects.toThrow("cancelled");
  await expect.poll(() => signals.map((signal) => signal.aborted)).toEqual([true]);
});
