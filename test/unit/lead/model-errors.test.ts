/** A whole lead over a real HTTP provider that fails: what its run, its clients and its children see. */
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { DeputyConfigInput } from "../../../src/config.ts";
import { parseDeputyConfig } from "../../../src/config.ts";
import { createModelCatalog } from "../../../src/agent/models/catalog.ts";
import { CircuitBreakers } from "../../../src/agent/models/circuit-breakers.ts";
import { ModelFailure } from "../../../src/agent/models/model.ts";
import { assembleLeadAgent } from "../../../src/agent/lead/assemble-lead-agent.ts";
import { TurnBudgetError } from "../../../src/agent/graph/turn-budget.ts";
import { toChildResult, toStoppedResult } from "../../../src/agent/subagents/child-result.ts";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import { countedIds } from "../../support/agent-fixture.ts";
import { leadFixture } from "../../support/lead-fixture.ts";
import { type ModelServer, startModelServer } from "../../support/model-server.ts";
import { catalogOf, ReplyModel } from "../../support/reply-model.ts";

let server: ModelServer;

beforeEach(async () => {
  server = await startModelServer();
});

afterEach(async () => {
  expect(server.violations).toEqual([]);
  await server.close();
});

/** Waits of a few milliseconds: what is waited for is tested where the clock is ours. */
const QUICK = { retry_base_delay_ms: 1, retry_cap_delay_ms: 2, burst_retry_base_delay_ms: 1 };
const MODELS: DeputyConfigInput["models"] = [
  { name: "first", provider: "openai", model: "model-one", fallbacks: ["second", "third"] },
  { name: "second", provider: "openai", model: "model-two" },
  { name: "third", provider: "openai", model: "model-three", fallbacks: ["first"] },
];

interface Setting {
  readonly models?: DeputyConfigInput["models"];
  readonly circuit?: Record<string, number>;
}

function leadOver({ models = [{ name: "openai", provider: "openai" }], circuit = {} }: Setting = {}) {
  const deputy: DeputyConfigInput = { models, llm_call: { ...QUICK, circuit } };
  const parsed = parseDeputyConfig(deputy);
  const catalog = createModelCatalog({
    models: parsed.models,
    credentials: { openaiApiKey: "k", openaiBaseUrl: server.url },
    newId: countedIds("message"),
    random: Math.random,
    now: Date.now,
    modelIdleMs: 5_000,
  });
  const lead = leadFixture({ deputy, models: catalog });
  let now = 0;
  const circuits = new CircuitBreakers(parsed.llm_call.circuit, () => now);
  let runs = 0;
  return {
    advance: (ms: number) => void (now += ms),
    /** One run on the one thread, each of them with a graph of its own, as in a thread's object. */
    async ask(prompt: string) {
      runs += 1;
      const config = { configurable: { thread_id: "thread-1", run_id: `run-${runs}` }, recursionLimit: 202 };
      const graph = assembleLeadAgent(config, { ...lead.options, circuits }).graph;
      const before = server.requests.length;
      const events: Record<string, unknown>[] = [];
      const input = { messages: [new HumanMessage({ id: `h${runs}`, content: prompt })] };
      const stream = await graph.stream(input, { ...config, streamMode: ["custom", "messages"] });
      const shown = new Set<string>();
      for await (const [mode, chunk] of stream as AsyncIterable<[string, never]>) {
        if (mode === "custom") events.push(chunk);
        else shown.add((chunk as [{ id: string }])[0].id);
      }
      const state = (await graph.getState(config)).values as ThreadState;
      const answer = state.messages.at(-1) as AIMessage;
      return { state, answer, events, shown, requests: server.requests.slice(before) };
    },
  };
}

const retriesIn = (events: readonly Record<string, unknown>[]) => events.filter((event) => event.type === "llm_retry");

describe("a lead whose provider fails", () => {
  test("R86 ends with an answer that carries the mark, its reason and the provider's words; it does not throw", async () => {
    const { answer, requests, shown } = await leadOver().ask("@ fail 503\n@ say never");
    expect(requests.length).toBe(3);
    expect(answer.additional_kwargs).toEqual({
      deerflow_error_fallback: true,
      error_type: "ModelFailure",
      error_reason: "transient",
      error_detail: "the provider answered 503: the script asked for it",
    });
    expect(answer.text).toMatch(/could not be reached or failed/);
    expect(answer.id).toBeTruthy();
    expect(shown).toContain(answer.id);
    expect(answer.tool_calls).toEqual([]);
  });

  test("R86 tells each retry on the custom stream, with the attempts there really are", async () => {
    const lead = leadOver();
    expect(retriesIn((await lead.ask("@ fail 503 2\n@ say at last")).events)).toMatchObject([
      { type: "llm_retry", attempt: 1, max_attempts: 3, reason: "transient", message: expect.stringContaining("503") },
      { type: "llm_retry", attempt: 2, max_attempts: 3, wait_ms: expect.any(Number) },
    ]);
    const cut = await lead.ask("@ fail cut\n@ say one two three four");
    expect(retriesIn(cut.events)).toMatchObject([{ attempt: 1, max_attempts: 2 }]);
    expect(cut.requests.length).toBe(2);
  });

  test("keeps the text of a broken stream as a detail, never as an answer (P5)", async () => {
    const { answer } = await leadOver().ask("@ fail cut\n@ say one two three four");
    expect(answer.text).toMatch(/broke off before it was complete/);
    expect(answer.text).not.toContain("one two");
    expect(answer.additional_kwargs["error_detail"]).toMatch(/not an answer:\none two/);
    const reset = await leadOver().ask("@ quirk reset\n@ fail cut\n@ say one two three four");
    expect(reset.answer.text).toMatch(/broke off before it was complete/);
  });

  test.each([
    ["400", "generic"],
    ["401", "auth"],
    ["402", "quota"],
  ])("asks once when the provider refused with %s: %s", async (status, reason) => {
    const { answer, requests } = await leadOver().ask(`@ fail ${status}\n@ say never`);
    expect(requests.length).toBe(1);
    expect(answer.additional_kwargs).toMatchObject({ deerflow_error_fallback: true, error_reason: reason });
  });

  test("goes on in its next run: the mark of an earlier one is history, and no provider refuses it", async () => {
    const lead = leadOver();
    await lead.ask("@ fail 400\n@ say never");
    expect((await lead.ask("@ say again")).answer.text).toBe("again");
  });

  test("R98 an answer that stays empty is no provider failure: it is thrown, without a mark", async () => {
    await expect(leadOver().ask("@ fail empty\n@ say x")).rejects.toMatchObject({ reason: "empty" });
  });

  test("a fault of ours is not dressed up as a provider's failure", async () => {
    const model = new ReplyModel(() => Promise.reject(new TypeError("a bug")));
    const lead = leadFixture({ models: catalogOf(model) });
    const input = { messages: [new HumanMessage({ id: "h1", content: "go" })] };
    await expect(lead.graph.invoke(input, lead.config)).rejects.toThrow("a bug");
    expect(model.requests.length).toBe(1);
  });
});

const delegate = (script: string) =>
  `@ delegate general-purpose :: doomed :: <<'CHILD'\nThe job.\n${script}\nCHILD\n@ say went on`;

describe("a child whose provider fails", () => {
  test("R87 a marked last message is a failed task, told as task_failed and in the result's metadata", async () => {
    const { answer, state, events } = await leadOver().ask(delegate("@ fail 400\n@ say never"));
    expect(answer.text).toBe("went on");
    const result = state.messages.find((message) => message.getType() === "tool");
    expect(result).toMatchObject({ status: "error", additional_kwargs: { subagent_status: "failed" } });
    expect(result?.additional_kwargs["subagent_error"]).toMatch(/refused the request/);
    expect(events.at(-1)).toMatchObject({ type: "task_failed", error: expect.stringMatching(/refused the request/) });
    expect(state.delegations).toMatchObject([{ status: "failed" }]);
  });

  test("R86 its retries are not told as the lead's, its partial text is no result", async () => {
    const { events, state, requests } = await leadOver().ask(delegate("@ fail cut\n@ say one two three four"));
    expect(requests.length).toBe(4);
    expect(retriesIn(events)).toEqual([]);
    expect(state.messages.find((message) => message.getType() === "tool")?.text).not.toContain("one two");
  });

  const marked = (id: string, text: string) =>
    new AIMessage({
      id,
      content: text,
      additional_kwargs: { deerflow_error_fallback: true, error_detail: "the detail" },
    });

  test.each([
    [
      "R88 a stale mark on an earlier message",
      [marked("a", "failed"), new AIMessage({ id: "b", content: "fine" })],
      "fine",
    ],
    [
      "R88 words of failure without a mark",
      [new AIMessage({ id: "a", content: "LLM request failed" })],
      "LLM request failed",
    ],
  ])("%s is no failure", (_what, messages, text) => {
    expect(toChildResult(messages)).toEqual({ stopReason: "completed", output: [{ type: "text", text }] });
  });

  test("R87 a mark on the last message wins over a spent turn budget; an older one does not", () => {
    const spent = new TurnBudgetError("child", 3);
    expect(toStoppedResult([marked("a", "no provider")], spent)).toMatchObject({ stopReason: "error" });
    const later = new AIMessage({ id: "b", content: "half" });
    expect(toStoppedResult([marked("a", "no provider"), later], spent)).toMatchObject({ stopReason: "max-turns" });
  });

  test("R87 its error is the marked text, else the detail; what it had said before stays partial", () => {
    const said = new AIMessage({ id: "a", content: "half" });
    expect(toChildResult([said, marked("b", "no provider")])).toEqual({
      stopReason: "error",
      diagnostic: "no provider",
      output: [{ type: "text", text: "half" }],
    });
    expect(toChildResult([marked("b", "")])).toMatchObject({ diagnostic: "the detail", output: [] });
  });
});

describe("the circuit breaker of an object", () => {
  const circuit = { failure_threshold: 2, recovery_timeout_seconds: 60 };

  test("opens over runs and their graphs, asks nobody while open, then probes once with one attempt", async () => {
    const lead = leadOver({ circuit });
    for (const expected of [3, 3, 0]) {
      expect((await lead.ask("@ fail 503\n@ say never")).requests.length).toBe(expected);
    }
    const open = await lead.ask("@ say fine");
    expect(open.requests.length).toBe(0);
    expect(open.answer.additional_kwargs).toMatchObject({
      deerflow_error_fallback: true,
      error_type: "CircuitBreakerOpen",
      error_reason: "circuit_open",
    });
    lead.advance(60_000);
    expect((await lead.ask("@ fail 503\n@ say never")).requests.length).toBe(1);
    expect((await lead.ask("@ say fine")).requests.length).toBe(0);
    lead.advance(60_000);
    expect((await lead.ask("@ say fine")).answer.text).toBe("fine");
    expect((await lead.ask("@ fail 503 1\n@ say fine")).requests.length).toBe(2);
  });

  test("is shared by the lead and its children: what children found out, the lead need not", async () => {
    const { answer, requests } = await leadOver({ circuit: { ...circuit, failure_threshold: 1 } }).ask(
      delegate("@ fail 503\n@ say never"),
    );
    // The lead's first answer, the child's three attempts.
    expect(requests.length).toBe(4);
    expect(answer.additional_kwargs).toMatchObject({ error_reason: "circuit_open" });
  });

  test.each(["400", "401", "402"])("does not count a request refused with %s", async (status) => {
    const lead = leadOver({ circuit });
    for (let run = 0; run < 3; run += 1) await lead.ask(`@ fail ${status}\n@ say never`);
    expect((await lead.ask("@ say fine")).answer.text).toBe("fine");
  });

  test("an abort during a probe leaves the place to the next call", async () => {
    let now = 0;
    const circuits = new CircuitBreakers(circuit, () => now);
    const abort = new AbortController();
    let fails = true;
    const model = new ReplyModel(async (_request, config) => {
      if (fails) throw new ModelFailure("provider", "down", { status: 503 });
      abort.abort();
      config.signal?.throwIfAborted();
      return new AIMessage("fine");
    });
    const lead = leadFixture({ deputy: { llm_call: QUICK }, models: catalogOf(model) });
    const ask = (thread: string, signal?: AbortSignal) => {
      const config = {
        configurable: { thread_id: thread, run_id: thread },
        ...(signal === undefined ? {} : { signal }),
      };
      const input = { messages: [new HumanMessage({ id: "h", content: "go" })] };
      return assembleLeadAgent(config, { ...lead.options, circuits }).graph.invoke(input, config);
    };
    await ask("a");
    await ask("b");
    fails = false;
    now = 60_000;
    await expect(ask("c", abort.signal)).rejects.toThrow();
    expect((await ask("d")).messages.at(-1)?.text).toBe("fine");
  });
});

describe("fallback models", () => {
  const asked = (requests: readonly { readonly model?: unknown }[]) => requests.map((request) => request.model);
  const thrice = ["model-one", "model-one", "model-one"];

  test("the next one answers when the first is exhausted, and is asked with the same request", async () => {
    const { answer, requests } = await leadOver({ models: MODELS }).ask("@ fail 503 3\n@ say rescued");
    expect(asked(requests)).toEqual([...thrice, "model-two"]);
    expect(requests[3]?.messages).toEqual(requests[0]?.messages);
    expect(answer.text).toBe("rescued");
  });

  test("each is asked once, none again, and the failure told is that of the model that was asked (P8)", async () => {
    const { answer, requests } = await leadOver({ models: MODELS }).ask("@ fail 503\n@ say never");
    expect(asked(requests)).toEqual([...thrice, "model-two", "model-three"]);
    expect(answer.additional_kwargs).toMatchObject({ deerflow_error_fallback: true, error_reason: "transient" });
    expect(answer.additional_kwargs["error_detail"]).toContain("Fallback model 'second': the provider answered 503");
  });

  test("an open circuit goes to the next at once", async () => {
    const lead = leadOver({ models: MODELS, circuit: { failure_threshold: 1, recovery_timeout_seconds: 60 } });
    await lead.ask("@ fail 503 3\n@ say rescued");
    const { answer, requests } = await lead.ask("@ say fine");
    expect(asked(requests)).toEqual(["model-two"]);
    expect(answer.text).toBe("fine");
  });

  test("a child has its model's fallbacks too, and the tokens are counted once", async () => {
    const { state } = await leadOver({ models: MODELS }).ask(delegate("@ fail 503 3\n@ usage 5 2\n@ say rescued"));
    const result = state.messages.find((message) => message.getType() === "tool");
    expect(result?.text).toContain("rescued");
    expect(result?.additional_kwargs["subagent_token_usage"]).toEqual({
      input_tokens: 5,
      output_tokens: 2,
      total_tokens: 7,
    });
  });
});
