/**
 * An answer that breaks off in its middle, over real HTTP: the server ends the stream after half of the tokens, resets it, or
 * sends an error. Asked for again or gone on with, as the model is configured.
 */
import { type AIMessage, AIMessageChunk, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { modelErrors } from "../../../src/agent/hooks/model-errors.ts";
import { usageOfAnswer } from "../../../src/agent/models/answer-usage.ts";
import { createModelCatalog } from "../../../src/agent/models/catalog.ts";
import { CircuitBreakers } from "../../../src/agent/models/circuit-breakers.ts";
import { ContinuedText } from "../../../src/agent/models/continued-text.ts";
import { ModelFailure } from "../../../src/agent/models/model.ts";
import { STREAM_BREAKS_KEY } from "../../../src/agent/models/stream-breaks.ts";
import { parseDeputyConfig } from "../../../src/config.ts";
import { toRetryPolicy } from "../../../src/domain/model-errors/retry-policy.ts";
import { type AnthropicServer, startAnthropicServer } from "../../support/anthropic-server.ts";
import { type ModelServer, startModelServer } from "../../support/model-server.ts";
import { wireText } from "../../support/model-wire.ts";

const WHOLE = Array.from({ length: 40 }, (_, place) => `word${place}`).join(" ");
const tools = [{ name: "bash", description: "run", parameters: { type: "object", properties: {} } }];

let server: ModelServer;
let ids = 0;

beforeEach(async () => {
  server = await startModelServer();
});
afterEach(async () => {
  await server.close();
  expect(server.violations).toEqual([]);
});

interface Turn {
  readonly answer: AIMessage;
  /** What a client has of each message, by its id. */
  readonly streamed: ReadonlyMap<string, string>;
  readonly told: readonly Record<string, unknown>[];
}

interface TurnOptions {
  readonly signal?: AbortSignal;
  readonly onWait?: () => void;
  /** The server in place of OpenAI's. */
  readonly anthropic?: AnthropicServer;
  /** What the model is configured with besides. */
  readonly model?: Record<string, unknown>;
  /** What came behind the prompt. */
  readonly since?: readonly BaseMessage[];
}

async function turn(
  stream_break: "retry" | "continue",
  lines: readonly string[],
  options: TurnOptions = {},
): Promise<Turn> {
  const { anthropic } = options;
  const provider = anthropic === undefined ? "openai" : "anthropic";
  const config = parseDeputyConfig({ models: [{ name: "gpt", provider, stream_break, ...options.model }] });
  const models = createModelCatalog({
    models: config.models,
    credentials:
      anthropic === undefined
        ? { openaiApiKey: "k", openaiBaseUrl: server.url }
        : { anthropicApiKey: "k", anthropicBaseUrl: anthropic.url },
    modelIdleMs: 10_000,
    newId: () => `m-${(ids += 1)}`,
    random: Math.random,
    now: Date.now,
  });
  const hook = modelErrors({
    policy: toRetryPolicy(config.llm_call),
    circuits: new CircuitBreakers({ failure_threshold: 5, recovery_timeout_seconds: 60 }, () => 0),
    random: () => 0,
    newId: () => "fallback",
    tellsRetries: true,
    sleep: async (_ms, signal) => {
      options.onWait?.();
      signal?.throwIfAborted();
    },
  });
  const streamed = new Map<string, string>();
  const told: Record<string, unknown>[] = [];
  const handleLLMNewToken = (...args: unknown[]) => {
    const { message } = (args[5] as { chunk: { message: AIMessageChunk } }).chunk;
    // The adapter adds a chunk of its own, which says the usage.
    if (message.text === "") return;
    streamed.set(message.id!, (streamed.get(message.id!) ?? "") + message.text);
  };
  const runConfig = {
    callbacks: [{ handleLLMNewToken }],
    writer: (event: unknown) => void told.push(event as Record<string, unknown>),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  };
  const prompt = new HumanMessage(lines.map((line) => `@ ${line}`).join("\n"));
  const thinking = options.model?.["thinking"] === true;
  const request = { messages: [prompt, ...(options.since ?? [])], tools, model: models.find("gpt")!, thinking };
  const answer = await hook.wrapModelCall!(request, ({ model, ...asked }) => model!.generate(asked, runConfig), {
    config: runConfig,
    runId: "r",
    agentName: "lead",
  });
  return { answer, streamed, told };
}

type Break = { attempt: number; reason: string; action: string; partial_text: string; characters: number };
const breaksOf = ({ response_metadata }: AIMessage) => response_metadata[STREAM_BREAKS_KEY] as Break[] | undefined;
const HALF = WHOLE.slice(0, WHOLE.indexOf(" word20"));

describe("retry, the default", () => {
  it.each([
    ["cut", [`fail cut 1`], "truncated"],
    ["reset by the provider", ["quirk reset", "fail cut 1"], "truncated"],
    ["ended by an error inside", ["fail error 1"], "stream_error"],
  ])(
    "a stream %s: one finished answer under a new id, the text that was lost beside it",
    async (_what, how, reason) => {
      const { answer, streamed, told } = await turn("retry", [...how, `& say ${WHOLE}`]);
      expect(answer.text).toBe(WHOLE);
      expect(breaksOf(answer)).toEqual([
        {
          attempt: 1,
          reason,
          action: "retry",
          partial_text: expect.stringContaining(HALF),
          characters: expect.any(Number),
        },
      ]);
      expect(streamed.size).toBe(2);
      expect(streamed.get(answer.id!)).toBe(WHOLE);
      expect(told).toMatchObject([
        { type: "llm_retry", attempt: 1, stream_break: "retry", partial_text: expect.stringContaining(HALF) },
      ]);
      expect(server.requests).toHaveLength(2);
    },
  );

  it("counts the tokens of both requests, those that nobody reported as estimates", async () => {
    const { answer } = await turn("retry", ["usage 100 40", "& fail cut 1", `& say ${WHOLE}`]);
    const usage = usageOfAnswer("lead_agent", answer)!;
    expect(usage.reported).toMatchObject({ answers: 1, input_tokens: 100, output_tokens: 40 });
    expect(usage.estimated).toMatchObject({ answers: 1 });
    expect(usage.estimated!.output_tokens).toBeGreaterThanOrEqual(Math.floor(HALF.length / 4));
    expect(usage.estimated!.input_tokens).toBeGreaterThan(0);
  });

  it("a turn that breaks each time ends as a failed one with what it had said, after two requests", async () => {
    const { answer } = await turn("retry", ["fail cut", `& say ${WHOLE}`]);
    expect(answer.additional_kwargs["deerflow_error_fallback"]).toBe(true);
    expect(answer.text).not.toContain("word3");
    expect(breaksOf(answer)!.map(({ action }) => action)).toEqual(["retry", "give_up"]);
    expect(usageOfAnswer("lead_agent", answer)!.estimated).toMatchObject({ answers: 2 });
    expect(server.requests).toHaveLength(2);
  });
});

describe("continue", () => {
  it.each([
    ["that goes on where it stopped", []],
    ["that says the last part again", ["quirk repeat-end"]],
    ["that begins anew and says the same", ["quirk begin-anew"]],
  ])("a model %s: one answer, each word once, under the id of its first words", async (_what, quirks) => {
    const { answer, streamed, told } = await turn("continue", [...quirks, "fail cut 1", `& say ${WHOLE}`]);
    expect(answer.text).toBe(WHOLE);
    expect([...streamed]).toEqual([[answer.id, WHOLE]]);
    expect(breaksOf(answer)).toMatchObject([{ attempt: 1, reason: "truncated", action: "continue" }]);
    expect(told).toMatchObject([{ type: "llm_retry", stream_break: "continue" }]);
    const [, second] = server.requests;
    const [begun, goOn] = second!.messages.slice(-2);
    expect([begun!.role, goOn!.role]).toEqual(["assistant", "user"]);
    expect(WHOLE.startsWith(wireText(begun!))).toBe(true);
  });

  it("goes on more than once, within the configured attempts", async () => {
    const { answer, streamed } = await turn("continue", ["fail cut 2", `& say ${WHOLE}`]);
    expect(answer.text).toBe(WHOLE);
    expect([...streamed.keys()]).toEqual([answer.id]);
    expect(breaksOf(answer)!.map(({ action }) => action)).toEqual(["continue", "continue"]);
    expect(server.requests).toHaveLength(3);
    const failed = await turn("continue", ["fail cut", `& say ${WHOLE}`]);
    expect(failed.answer.additional_kwargs["deerflow_error_fallback"]).toBe(true);
    expect(breaksOf(failed.answer)!.map(({ action }) => action)).toEqual(["continue", "continue", "give_up"]);
    expect(server.requests).toHaveLength(6);
  });

  it("an answer that broke in a call is asked for again, with its text: half a call is nothing to go on with", async () => {
    const lines = ["quirk cut-call", "fail cut 1", `& say ${WHOLE}`, '& call bash {"command": "echo a long command"}'];
    const { answer } = await turn("continue", lines);
    expect(breaksOf(answer)).toMatchObject([{ action: "retry" }]);
    expect(answer.text).toBe(WHOLE);
    expect(answer.tool_calls).toMatchObject([{ name: "bash", args: { command: "echo a long command" } }]);
    expect(server.requests[1]!.messages).toHaveLength(1);
  });

  it("text that broke before its calls is gone on with, calls included", async () => {
    const lines = ["fail cut 1", `& say ${WHOLE}`, '& call bash {"command": "ls"}'];
    const { answer } = await turn("continue", lines);
    expect(breaksOf(answer)).toMatchObject([{ action: "continue" }]);
    expect(answer.text).toBe(WHOLE);
    expect(answer.tool_calls).toMatchObject([{ name: "bash", args: { command: "ls" } }]);
  });

  it("an answer that begins anew and goes another way is no continuation", async () => {
    const { answer } = await turn("continue", ["quirk another-way", "fail cut 1", `& say ${WHOLE}`]);
    expect(answer.text).not.toContain("but otherwise");
    expect(answer.additional_kwargs["deerflow_error_fallback"]).toBe(true);
  });

  it("a cancel between the two ends the turn: nothing more is asked", async () => {
    const stop = new AbortController();
    const cancelled = turn("continue", ["fail cut 1", `& say ${WHOLE}`], {
      signal: stop.signal,
      onWait: () => stop.abort(new Error("cancelled")),
    });
    await expect(cancelled).rejects.toThrow("cancelled");
    expect(server.requests).toHaveLength(1);
  });
});

describe("continue, of Anthropic's models", () => {
  let anthropic: AnthropicServer;
  beforeEach(async () => {
    anthropic = await startAnthropicServer();
  });
  afterEach(async () => {
    await anthropic.close();
    expect(anthropic.violations).toEqual([]);
  });

  it.each([
    ["without thinking", {}],
    ["that thinks", { thinking: true }],
  ])("a model %s: one answer, each word once, under the id of its first words", async (_what, model) => {
    const { answer, streamed } = await turn("continue", ["fail cut 1", `& say ${WHOLE}`], { anthropic, model });
    expect(answer.text).toBe(WHOLE);
    expect([...streamed]).toEqual([[answer.id, WHOLE]]);
    expect(breaksOf(answer)).toMatchObject([{ attempt: 1, action: "continue" }]);
    const [begun, goOn] = anthropic.requests[1]!.messages.slice(-2);
    expect([begun!.role, goOn!.role]).toEqual(["assistant", "user"]);
  });

  it("text that broke before its calls is gone on with, calls included", async () => {
    const lines = ["fail cut 1", `& say ${WHOLE}`, '& call bash {"command": "ls"}'];
    const { answer } = await turn("continue", lines, { anthropic });
    expect(answer.text).toBe(WHOLE);
    expect(answer.tool_calls).toMatchObject([{ name: "bash", args: { command: "ls" } }]);
  });

  it("a model that thinks: before its calls, and between their results and its answer", async () => {
    const model = { thinking: true };
    const lines = ["fail cut 1", `& say ${WHOLE}`, '& call bash {"command": "ls"}', "fail cut 1", `& say so ${WHOLE}`];
    const { answer: calling } = await turn("continue", lines, { anthropic, model });
    expect([calling.text, breaksOf(calling)!.map(({ action }) => action)]).toEqual([WHOLE, ["continue"]]);
    const [call] = calling.tool_calls!;
    const since = [calling, new ToolMessage({ tool_call_id: call!.id!, content: "listed" })];
    const { answer } = await turn("continue", lines, { anthropic, model, since });
    expect([answer.text, breaksOf(answer)!.map(({ action }) => action)]).toEqual([`so ${WHOLE}`, ["continue"]]);
  });
});

describe("the joint", () => {
  const joined = (begun: string, ...pieces: string[]) => {
    const text = new ContinuedText(begun);
    return begun + pieces.map((piece) => text.push(piece)).join("") + text.finish();
  };

  it("leaves a repeated part out, and nothing else", () => {
    const begun = "The quick brown fox jumps over";
    expect(joined(begun, " the dog.")).toBe(`${begun} the dog.`);
    expect(joined(begun, "fox jumps", " over the", " dog.")).toBe(`${begun} the dog.`);
    // Shorter than a repetition would be: it may be meant.
    expect(joined("very very", " very good")).toBe("very very very good");
    expect(joined(begun, ...`${begun} the dog.`.split(""))).toBe(`${begun} the dog.`);
    expect(joined("", "a", "b")).toBe("ab");
  });

  it("refuses another answer instead of gluing two together", () => {
    const begun = "x".repeat(40) + "y".repeat(60);
    expect(() => joined(begun, begun.slice(0, 80), "z".repeat(700))).toThrow(ModelFailure);
  });
});
