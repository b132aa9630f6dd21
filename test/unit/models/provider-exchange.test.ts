import { HumanMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { ModelFailure } from "../../../src/agent/models/model.ts";
import { HeaderGates } from "../../../src/agent/models/header-gate.ts";
import { createOpenAiModel } from "../../../src/agent/models/openai.ts";
import { readRetryAfterMs } from "../../../src/agent/models/provider-failure.ts";

const encode = new TextEncoder();
const request = { messages: [new HumanMessage("hi")], tools: [] };

type Respond = (signal: AbortSignal) => Response | Promise<Response>;

const START = Date.parse("2026-01-01T00:00:00Z");

const modelOver = (respond: Respond, modelIdleMs = 60_000, now = () => START) =>
  createOpenAiModel({
    name: "openai",
    apiKey: "k",
    modelIdleMs,
    newId: () => "m",
    random: Math.random,
    now,
    gates: new HeaderGates(),
    fetch: async (_url, init) => respond(init?.signal as AbortSignal),
  });

const streaming = (body: ConstructorParameters<typeof Response>[0]) =>
  new Response(body, { headers: { "content-type": "text/event-stream" } });

async function failureOf(respond: Respond, modelIdleMs?: number): Promise<ModelFailure> {
  const error: unknown = await modelOver(respond, modelIdleMs)
    .generate(request, {})
    .then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  expect(error).toBeInstanceOf(ModelFailure);
  return error as ModelFailure;
}

const text = (content: unknown, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`;

describe("a 200 that is no stream", () => {
  it.each([
    ['{"error":{"message":"out of credit","code":402}}', "out of credit", 402],
    ['{"choices":[{"message":{"content":"whole"}}]}', "without an event stream", undefined],
    ["<html>", "without an event stream", undefined],
  ])("%s", async (body, message, status) => {
    const failure = await failureOf(() => new Response(body, { headers: { "content-type": "application/json" } }));
    expect(failure).toMatchObject({ reason: "stream_error", status });
    expect(failure.message).toContain(message);
  });
});

it("a redirect is not followed: it would carry the key to another host", async () => {
  const seen: (RequestInit | undefined)[] = [];
  const model = createOpenAiModel({
    name: "openai",
    apiKey: "k",
    modelIdleMs: 60_000,
    newId: () => "m",
    random: Math.random,
    now: Date.now,
    gates: new HeaderGates(),
    fetch: async (_url, init) => {
      seen.push(init);
      return new Response(null, { status: 307, headers: { location: "https://elsewhere.example/" } });
    },
  });
  await expect(model.generate(request, {})).rejects.toMatchObject({ reason: "provider", status: 307 });
  expect(seen.map((init) => init?.redirect)).toEqual(["manual"]);
});

describe("an error status", () => {
  it("shows the provider's words and not a whole page (P8)", async () => {
    const page = `<html>${"x".repeat(100_000)}`;
    expect((await failureOf(() => new Response(page, { status: 502 }))).message.length).toBeLessThan(600);
    const failure = await failureOf(() => Response.json({ error: { message: "bad key" } }, { status: 401 }));
    expect([failure.status, failure.message]).toEqual([401, "the provider answered 401: bad key"]);
  });

  it.each([
    [{ message: "m", code: "insufficient_quota", type: "x" }, "insufficient_quota"],
    [{ message: "m", code: 429, type: "rate_limit_error" }, "rate_limit_error"],
    [{ message: "m", code: null, type: null }, undefined],
    [{ message: "m", code: "not a word" }, undefined],
  ])("keeps the provider's own word for it: %j", async (error, code) => {
    expect((await failureOf(() => Response.json({ error }, { status: 429 }))).code).toBe(code);
    const body = `data: ${JSON.stringify({ error })}\n\n`;
    expect((await failureOf(() => streaming(body))).code).toBe(code);
  });

  it.each([
    [{ "retry-after": "3" }, 3_000],
    [{ "retry-after-ms": "250", "retry-after": "3" }, 250],
    [{ "retry-after": "Thu, 01 Jan 2026 00:00:09 GMT" }, 9_000],
    [{ "retry-after": "Wed, 31 Dec 2025 23:59:00 GMT" }, undefined],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "-5" }, undefined],
    [{ "retry-after": "5, 7" }, undefined],
    [{ "retry-after": "0x10" }, undefined],
    [{ "retry-after-ms": "", "retry-after": "2" }, 2_000],
    [{ "retry-after": "soon" }, undefined],
    [{}, undefined],
  ])("asks to wait by %j", (headers, expected) => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    expect(readRetryAfterMs(new Headers(headers as Record<string, string>), now)).toBe(expected);
  });
});

it("a whole answer stays one when the connection breaks behind its finish reason", async () => {
  const frames = [text("done", "stop")];
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const frame = frames.shift();
      if (frame === undefined) controller.error(new Error("reset"));
      else controller.enqueue(encode.encode(frame));
    },
  });
  expect((await modelOver(() => streaming(body)).generate(request, {})).text).toBe("done");
});

it("a connection that breaks in the middle of an answer is a broken stream, and what it had said is kept", async () => {
  const frames = [text("one "), text("two")];
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const frame = frames.shift();
      if (frame === undefined) controller.error(new Error("reset"));
      else controller.enqueue(encode.encode(frame));
    },
  });
  const failure = await failureOf(() => streaming(body));
  expect(failure).toMatchObject({ reason: "truncated", status: undefined, partialText: "one two" });
  expect(failure.message).toContain("in the middle of the answer");
});

it("keeps the beginning of a long broken answer only (P8)", async () => {
  const failure = await failureOf(() => streaming(text("x".repeat(5_000))));
  expect([failure.reason, failure.partialText.length]).toEqual(["truncated", 1_000]);
});

it("a slow consumer is not taken for a silent provider", async () => {
  const frames = [text("one "), text("two "), text("three", "stop")];
  const respond: Respond = (signal) =>
    streaming(
      new ReadableStream<Uint8Array>(
        {
          pull: (controller) => {
            const frame = frames.shift();
            if (signal.aborted) controller.error(signal.reason);
            else if (frame === undefined) controller.close();
            else controller.enqueue(encode.encode(frame));
          },
        },
        { highWaterMark: 0 },
      ),
    );
  const callbacks = [{ awaitHandlers: true, handleLLMNewToken: () => new Promise<void>((go) => setTimeout(go, 400)) }];
  const answer = await modelOver(respond, 200).generate(request, { callbacks });
  expect(answer.text).toBe("one two three");
});

it("silence before the headers is idle and aborts the request", async () => {
  const seen: AbortSignal[] = [];
  const silent: Respond = (signal) =>
    new Promise((_resolve, reject) => {
      seen.push(signal);
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    });
  expect((await failureOf(silent, 20)).reason).toBe("idle");
  expect(seen.map((signal) => signal.aborted)).toEqual([true]);
});

/** Sends `first`, then a sign of life every ten milliseconds. */
function alive(first: string, sign: string): Response {
  let timer: ReturnType<typeof setInterval> | undefined;
  return streaming(
    new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(encode.encode(first));
        timer = setInterval(() => controller.enqueue(encode.encode(sign)), 10);
      },
      cancel: () => clearInterval(timer),
    }),
  );
}

it.each([": still here\n\n", 'data: {"type": "ping"}\n\n'])(
  "signs of life alone (%j) do not keep a request open for ever (P8), and end no answer that is whole",
  async (sign) => {
    const broken: unknown = await modelOver(() => alive(text("begun"), sign), 100, Date.now)
      .generate(request, {})
      .catch((error: unknown) => error);
    expect(broken).toMatchObject({ reason: "idle", partialText: "begun" });
    const whole = modelOver(() => alive(text("whole", "stop"), sign), 100, Date.now).generate(request, {});
    expect((await whole).text).toBe("whole");
  },
);

it("an error event, a refusal and text given as blocks are read", async () => {
  const failure = await failureOf(() => streaming("event: error\ndata: overloaded\n\n"));
  expect([failure.reason, failure.message]).toEqual(["stream_error", "overloaded"]);
  const refusal = 'data: {"choices":[{"index":0,"delta":{"refusal":"I will not."},"finish_reason":"stop"}]}\n\n';
  expect((await modelOver(() => streaming(refusal)).generate(request, {})).text).toBe("I will not.");
  const blocks = text([{ type: "text", text: "block" }], "stop");
  expect((await modelOver(() => streaming(blocks)).generate(request, {})).text).toBe("block");
});

it("bounds an answer and an event without end (P8)", async () => {
  const endless = (chunk: string) => () => {
    const bytes = encode.encode(chunk);
    return streaming(new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(bytes) }));
  };
  const long = "x".repeat(500_000);
  expect((await failureOf(endless(text(long)))).message).toContain("characters");
  expect((await failureOf(endless(`data: ${long}`))).message).toContain("bytes");
});

it("cancels the provider's body however the exchange ends", async () => {
  for (const frame of ["data: not json\n\n", `${text("x", "stop")}data: [DONE]\n\n`, 'data: {"error":"no"}\n\n']) {
    const { promise, resolve } = Promise.withResolvers<string>();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(encode.encode(frame)),
      cancel: () => resolve("cancelled"),
    });
    await modelOver(() => streaming(body))
      .generate(request, {})
      .catch(() => undefined);
    expect(await promise).toBe("cancelled");
  }
});
