import { AIMessage, HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { describe, expect, it } from "vitest";
import { type ModelRetry, withAttempts } from "../../../src/agent/models/attempts.ts";
import { type ChatModel, ModelFailure, type ModelRequest } from "../../../src/agent/models/model.ts";
import { createScriptedModel } from "../../../src/agent/models/scripted.ts";
import { sleepFor } from "../../../src/agent/models/sleep.ts";
import { parseDeputyConfig } from "../../../src/config.ts";
import { toRetryPolicy } from "../../../src/domain/model-errors/retry-policy.ts";

const policy = toRetryPolicy(parseDeputyConfig({}).llm_call);

let ids = 0;
const scripted = () => createScriptedModel({ newId: () => `m-${(ids += 1)}`, random: Math.random, modelIdleMs: 5 });

const requestOf = (...lines: string[]) => ({
  messages: [new HumanMessage({ id: `h-${(ids += 1)}`, content: lines.map((line) => `@ ${line}`).join("\n") })],
  tools: [],
});

function attempting(model: ChatModel, request: ModelRequest, config: RunnableConfig = {}) {
  const waited: number[] = [];
  const retries: ModelRetry[] = [];
  const ended = withAttempts(() => model.generate(request, config), config.signal, {
    policy,
    random: () => 0.5,
    sleep: (ms) => Promise.resolve(void waited.push(ms)),
    onRetry: (retry) => void retries.push(retry),
  });
  return { ended, waited, retries };
}

describe("attempts at a model turn", () => {
  it.each([
    ["429", 2],
    ["503", 2],
    ["408", 2],
    ["empty", 2],
    ["error", 2],
    ["cut", 1],
    ["stall", 1],
  ])("tries a turn that failed by %s %i times again, and the abandoned attempt leaves no text", async (what, times) => {
    const { ended, waited } = attempting(scripted(), requestOf(`fail ${what} ${times}`, "say the whole answer"));
    const turn = await ended;
    expect(turn.ok && turn.value.text).toBe("the whole answer");
    expect(waited.length).toBe(times);
  });

  it.each([
    ["503", 3],
    ["empty", 3],
    ["cut", 2],
    ["stall", 2],
  ])("gives up on %s after %i attempts, which is what its retries announced (P8)", async (what, attempts) => {
    const { ended, retries } = attempting(scripted(), requestOf(`fail ${what}`, "say one two three four"));
    expect((await ended).ok).toBe(false);
    expect(retries.map((retry) => [retry.attempt, retry.attempts])).toEqual(
      Array.from({ length: attempts - 1 }, (_, index) => [index + 1, attempts]),
    );
  });

  it("keeps what a broken stream had said, and a later attempt that said nothing does not lose it", async () => {
    const said = ["half an ans", "", ""];
    const model: ChatModel = {
      name: "m",
      provider: "test",
      generate: () => Promise.reject(new ModelFailure("provider", "x", { status: 503, partialText: said.shift() })),
    };
    expect(await attempting(model, requestOf()).ended).toMatchObject({
      ok: false,
      error: { partialText: "half an ans", reason: "transient" },
    });
    const cut = await attempting(scripted(), requestOf("fail cut", "say one two three four")).ended;
    expect(cut).toMatchObject({ ok: false, error: { partialText: "one two ", failure: { reason: "truncated" } } });
  });

  it.each(["400", "401", "403", "404", "422"])("does not repeat a request that was refused with %s", async (status) => {
    const { ended, waited } = attempting(scripted(), requestOf(`fail ${status} 1`, "say never"));
    expect(await ended).toMatchObject({ ok: false, error: { failure: { status: Number(status) } } });
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
    await expect(attempting(broken, requestOf("say x")).ended).rejects.toThrow("bug");
    expect(calls).toBe(1);
  });

  it("obeys Retry-After only up to its bound (P8)", async () => {
    const asked = attempting(scripted(), requestOf("fail 429 1 retry-after 7", "say first"));
    const hour = attempting(scripted(), requestOf("fail 429 1 retry-after 3600", "say second"));
    await Promise.all([asked.ended, hour.ended]);
    expect([...asked.waited, ...hour.waited]).toEqual([7_000, 60_000]);
  });

  it("an abort ends the wait at once", async () => {
    const controller = new AbortController();
    const request = requestOf("fail 429 9 retry-after 3600", "say x");
    const work = withAttempts(() => scripted().generate(request, {}), controller.signal, {
      policy,
      sleep: sleepFor,
      random: () => 0,
      onRetry: () => queueMicrotask(() => controller.abort(new Error("stop"))),
    });
    await expect(work).rejects.toThrow("stop");
  });

  it("returns an answer of the one attempt it needed unchanged", async () => {
    const answer = new AIMessage("ok");
    const model: ChatModel = { name: "m", provider: "test", generate: () => Promise.resolve(answer) };
    const turn = await attempting(model, requestOf("say x")).ended;
    expect(turn.ok && turn.value).toBe(answer);
  });
});
