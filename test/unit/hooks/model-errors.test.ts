import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { modelErrors } from "../../../src/agent/hooks/model-errors.ts";
import { CircuitBreakers } from "../../../src/agent/models/circuit-breakers.ts";
import {
  type ChatModel,
  ModelFailure,
  type ModelFailureDetails,
  type ModelRequest,
} from "../../../src/agent/models/model.ts";
import { parseDeputyConfig } from "../../../src/config.ts";
import type { ModelFailureReason } from "../../../src/domain/model-errors/classify-model-error.ts";
import { toRetryPolicy } from "../../../src/domain/model-errors/retry-policy.ts";
import { ReplyModel, textAnswer } from "../../support/reply-model.ts";

type Failing = readonly [reason: ModelFailureReason, details: ModelFailureDetails];

const failing = (name: string, [reason, details]: Failing) =>
  new ReplyModel(() => Promise.reject(new ModelFailure(reason, `${name} failed`, details)), name);
const answering = (name: string) => new ReplyModel(() => textAnswer(`said by ${name}`), name);

function hookOver(threshold = 1) {
  const waits: number[] = [];
  const circuits = new CircuitBreakers({ failure_threshold: threshold, recovery_timeout_seconds: 60 }, () => 0);
  const hook = modelErrors({
    policy: toRetryPolicy(parseDeputyConfig({}).llm_call),
    circuits,
    random: () => 0,
    newId: () => "fallback-1",
    tellsRetries: false,
    sleep: (ms) => Promise.resolve(void waits.push(ms)),
  });
  const call = (asked: ChatModel, ...fallbacks: ChatModel[]) => {
    const model = { ...bare(asked), fallbacks };
    const request = { messages: [new HumanMessage("go")], tools: [], model };
    const next = ({ model: chosen = model, ...rest }: ModelRequest) => chosen.generate(rest, {});
    return hook.wrapModelCall!(request, next, { config: {}, runId: "r", agentName: "lead" });
  };
  return { call, waits, circuits };
}

const bare = (model: ChatModel): ChatModel => ({
  name: model.name,
  provider: model.provider,
  generate: (request, config) => model.generate(request, config),
});

describe("what the circuit breaker counts", () => {
  it.each<[string, Failing, boolean]>([
    ["an exhausted failure that passes", ["provider", { status: 503 }], true],
    ["a stream that breaks off", ["truncated", {}], true],
    ["silence", ["idle", {}], true],
    ["a burst limit", ["provider", { status: 429, code: "limit_burst_rate" }], false],
    ["a refused request", ["provider", { status: 400 }], false],
    ["an account without money", ["provider", { status: 429, code: "insufficient_quota" }], false],
    ["an empty answer", ["empty", {}], false],
  ])("%s: %s", async (_what, failure, counts) => {
    const { call, circuits } = hookOver();
    await call(failing("m", failure)).catch(() => undefined);
    expect(circuits.enter("m") === undefined).toBe(counts);
  });
});

describe("a call that nobody answered", () => {
  it("is told as the failure of the model that was asked, the others as a detail", async () => {
    const { call } = hookOver();
    const answer = await call(
      failing("first", ["provider", { status: 401 }]),
      failing("second", ["provider", { status: 503 }]),
    );
    expect(answer.id).toBe("fallback-1");
    expect(answer.additional_kwargs).toMatchObject({
      error_reason: "auth",
      error_detail: "first failed\nFallback model 'second': second failed",
    });
  });

  it("R98 is thrown when the model that was asked stayed empty, whatever the others did", async () => {
    const { call } = hookOver();
    const ended = call(failing("first", ["empty", {}]), failing("second", ["provider", { status: 503 }]));
    await expect(ended).rejects.toMatchObject({ reason: "empty", message: "first failed" });
  });

  it("bounds its detail (P8)", async () => {
    const model = failing("x".repeat(3_000), ["provider", { status: 400 }]);
    expect(String((await hookOver().call(model)).additional_kwargs["error_detail"]).length).toBe(2_000);
  });
});

it("a refusal goes to the fallback at once: another provider has another account", async () => {
  const { call, waits } = hookOver();
  const answer = await call(failing("first", ["provider", { status: 402 }]), answering("second"));
  expect(answer).toBeInstanceOf(AIMessage);
  expect([answer.text, waits]).toEqual(["said by second", []]);
});

it("waits from its base up between attempts, and from its own base after a burst limit", async () => {
  const plain = hookOver();
  await plain.call(failing("m", ["provider", { status: 503 }]));
  const burst = hookOver();
  await burst.call(failing("m", ["provider", { status: 429, code: "limit_burst_rate" }]));
  expect([plain.waits, burst.waits]).toEqual([[1_000, 1_000], [5_000]]);
});

it("does not take an answer for a failure because of its words (R88)", async () => {
  const model = new ReplyModel(() => textAnswer("LLM request failed: quota exceeded"), "m");
  expect((await hookOver().call(model)).additional_kwargs).toEqual({});
});
