import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { generateWithAttempts, isRetryable, retryWaitMs } from "../../../src/agent/models/attempts.ts";
import { type ChatModel, ModelFailure } from "../../../src/agent/models/model.ts";
import { createScriptedModel } from "../../../src/agent/models/scripted.ts";
import { sleepFor } from "../../../src/agent/models/sleep.ts";

let ids = 0;
const scripted = () => createScriptedModel({ newId: () => `m-${(ids += 1)}`, random: Math.random, modelIdleMs: 5 });

const requestOf = (...lines: string[]) => ({
  messages: [new HumanMessage({ id: `h-${(ids += 1)}`, content: lines.map((line) => `@ ${line}`).join("\n") })],
  tools: [],
});

function waits() {
  const waited: number[] = [];
  return { waited, sleep: (ms: number) => Promise.resolve(void waited.push(ms)) };
}

describe("generateWithAttempts", () => {
  it.each(["429", "503", "408", "cut", "empty", "stall", "error"])(
    "tries a turn that failed by %s again, and the abandoned attempt leaves no text in the answer",
    async (what) => {
      const { waited, sleep } = waits();
      const request = requestOf(`fail ${what} 2`, "say the whole answer");
      const answer = await generateWithAttempts(scripted(), request, {}, { sleep, random: () => 0.5 });
      expect(answer.text).toBe("the whole answer");
      expect(waited.length).toBe(2);
    },
  );

  it("throws the last failure after three attempts (P8, R98 decides)", async () => {
    const { waited, sleep } = waits();
    const work = generateWithAttempts(scripted(), requestOf("fail empty"), {}, { sleep, random: () => 0.5 });
    await expect(work).rejects.toMatchObject({ name: "ModelFailure", reason: "empty" });
    expect(waited.length).toBe(2);
  });

  it.each(["400", "401", "403", "404", "422"])("does not repeat a request that was refused with %s", async (status) => {
    const { waited, sleep } = waits();
    const request = requestOf(`fail ${status} 1`, "say never");
    const work = generateWithAttempts(scripted(), request, {}, { sleep, random: () => 0 });
    await expect(work).rejects.toMatchObject({ status: Number(status) });
    expect(waited).toEqual([]);
  });

  it("does not repeat a fault of ours", async () => {
    let calls = 0;
    const broken: ChatModel = {
      name: "broken",
      provider: "test",
      generate: () => {
        calls += 1;
        return Promise.reject(new TypeError("bug"));
      },
    };
    const work = generateWithAttempts(broken, requestOf("say x"), {}, { random: () => 0 });
    await expect(work).rejects.toThrow("bug");
    expect(calls).toBe(1);
  });

  it("obeys Retry-After only up to its bound (P8)", async () => {
    const { waited, sleep } = waits();
    const request = requestOf("fail 429 1 retry-after 7", "say first");
    await generateWithAttempts(scripted(), request, {}, { sleep, random: () => 0 });
    const hour = requestOf("fail 429 1 retry-after 3600", "say second");
    await generateWithAttempts(scripted(), hour, {}, { sleep, random: () => 0 });
    expect(waited).toEqual([7_000, 60_000]);
  });

  it("an abort ends the wait at once", async () => {
    const controller = new AbortController();
    const work = generateWithAttempts(
      scripted(),
      requestOf("fail 429 9 retry-after 3600", "say x"),
      { signal: controller.signal },
      { sleep: sleepFor, random: () => 0, onRetry: () => queueMicrotask(() => controller.abort(new Error("stop"))) },
    );
    await expect(work).rejects.toThrow("stop");
  });

  it("returns an answer of the one attempt it needed unchanged", async () => {
    const answer = new AIMessage("ok");
    const model: ChatModel = { name: "m", provider: "test", generate: () => Promise.resolve(answer) };
    expect(await generateWithAttempts(model, requestOf("say x"), {}, { random: () => 0 })).toBe(answer);
  });
});

it("waits between 1 s and 8 s, growing from the last wait", () => {
  const failure = new ModelFailure("idle", "silence");
  expect(retryWaitMs(failure, 1_000, () => 0)).toBe(1_000);
  expect(retryWaitMs(failure, 1_000, () => 1)).toBe(3_000);
  expect(retryWaitMs(failure, 3_000, () => 1)).toBe(8_000);
  expect(retryWaitMs(failure, 8_000, () => 1)).toBe(8_000);
});

it("takes an error inside a 200 by its status when it has one", () => {
  expect(isRetryable(new ModelFailure("stream_error", "x"))).toBe(true);
  expect(isRetryable(new ModelFailure("stream_error", "x", { status: 529 }))).toBe(true);
  expect(isRetryable(new ModelFailure("stream_error", "x", { status: 401 }))).toBe(false);
  expect(isRetryable(new ModelFailure("provider", "no connection"))).toBe(true);
});
