import "../../../src/async-context.ts";
import { HumanMessage } from "@langchain/core/messages";
import { expect, it } from "vitest";
import { createModelCatalog } from "../../../src/agent/models/catalog.ts";
import { parseDeputyConfig } from "../../../src/config.ts";

const frame = (type: string, fields: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const block = (index: number, content_block: object, delta: object) =>
  frame("content_block_start", { index, content_block }) + frame("content_block_delta", { index, delta });

const ANSWER = [
  frame("message_start", { message: { model: "claude-served", usage: { input_tokens: 5, output_tokens: 1 } } }),
  block(0, { type: "thinking", thinking: "" }, { type: "thinking_delta", thinking: "hm" }),
  frame("content_block_delta", { index: 0, delta: { type: "signature_delta", signature: "s" } }),
  block(1, { type: "text", text: "" }, { type: "text_delta", text: "grüße" }),
  block(2, { type: "tool_use", id: "toolu_1", name: "ls", input: {} }, { type: "input_json_delta", partial_json: "" }),
  frame("message_delta", { delta: { stop_reason: "tool_use" }, usage: { output_tokens: 7 } }),
  frame("message_stop", {}),
].join("");

const request = { messages: [new HumanMessage("hi")], tools: [], thinking: true };

function modelOver(respond: (init: RequestInit) => Response, modelIdleMs = 1_000) {
  const models = [{ name: "claude", provider: "anthropic" as const, thinking: true }];
  return createModelCatalog({
    models: parseDeputyConfig({ models }).models,
    credentials: { anthropicApiKey: "k" },
    modelIdleMs,
    newId: () => crypto.randomUUID(),
    random: Math.random,
    now: Date.now,
    fetch: (_input, init) => Promise.resolve(respond(init ?? {})),
  }).find();
}

const streaming = (bytes: BodyInit) => new Response(bytes, { headers: { "content-type": "text/event-stream" } });

it("a generation through the real Anthropic adapter runs in workerd: thinking, text, a call and usage (R166)", async () => {
  const sent: RequestInit[] = [];
  const answer = await modelOver((init) => {
    sent.push(init);
    return streaming(ANSWER);
  })!.generate(request, {});
  expect([answer.content, answer.additional_kwargs["reasoning_content"]]).toEqual(["grüße", "hm"]);
  expect(answer.tool_calls).toMatchObject([{ name: "ls", args: {} }]);
  expect(answer.usage_metadata).toEqual({ input_tokens: 5, output_tokens: 7, total_tokens: 12 });
  expect(answer.response_metadata).toEqual({ finish_reason: "tool_calls", model_name: "claude-served" });
  expect(new Headers(sent[0]!.headers).get("x-api-key")).toBe("k");
  expect(JSON.parse(sent[0]!.body as string)).toMatchObject({ thinking: { type: "adaptive" } });
});

it("silence aborts Anthropic's request in workerd too", async () => {
  const signals: AbortSignal[] = [];
  const silent = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) });
  const work = modelOver(({ signal }) => {
    if (signal) signals.push(signal);
    return streaming(silent);
  }, 50)!.generate(request, {});
  await expect(work).rejects.toMatchObject({ name: "ModelFailure", reason: "idle" });
  expect(signals.map((signal) => signal.aborted)).toEqual([true]);
});
