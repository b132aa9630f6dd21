import { AIMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { expect, test } from "vitest";
import { parseDeputyConfig } from "../../../src/config.ts";
import { childHooks } from "../../../src/agent/hooks/chains.ts";
import { CircuitBreakers } from "../../../src/agent/models/circuit-breakers.ts";
import { runBatchChild, type BatchChild } from "../../../src/agent/subagents/batch-child.ts";
import { spawnProvider } from "../../../src/agent/subagents/providers/spawn.ts";
import { SubagentRegistry } from "../../../src/agent/subagents/registry.ts";
import { ToolAuthorization } from "../../../src/agent/tools/authorization.ts";
import { UNNAMED_PRINCIPAL } from "../../../src/agent/tools/configured-policy.ts";
import type { SubagentDefinition } from "../../../src/agent/subagents/subagent-definition.ts";
import { SubagentService } from "../../../src/agent/subagents/subagent-service.ts";
import { countedIds, fixtureServices, plainTool, succeeded } from "../../support/agent-fixture.ts";
import { ManualTimers } from "../../support/manual-timers.ts";
import { catalogOf, ReplyModel, resultsIn, textAnswer, type Reply } from "../../support/reply-model.ts";

function definition(): SubagentDefinition {
  const found = new SubagentRegistry(parseDeputyConfig({}).subagents).find("general-purpose");
  // As a batch row gives it back.
  return JSON.parse(JSON.stringify(found)) as SubagentDefinition;
}

function item(reply: Reply, more: Partial<BatchChild> = {}) {
  const services = fixtureServices();
  const service = new SubagentService({ newId: countedIds(), reportFault: () => {} });
  service.register(spawnProvider());
  const timers = new ManualTimers();
  const model = new ReplyModel(reply);
  const child: BatchChild = {
    taskId: "b1:0:1",
    definition: definition(),
    prompt: "count",
    models: catalogOf(model),
    tools: ["look", "task", "batch_task"].map((name) => plainTool(name, () => succeeded("seen"))),
    hooks: childHooks({
      services,
      random: () => 0,
      llmCall: parseDeputyConfig({}).llm_call,
      circuits: new CircuitBreakers(parseDeputyConfig({}).llm_call.circuit, () => timers.now()),
      authorization: new ToolAuthorization({ policy: () => ({ kind: "allow" }), principal: UNNAMED_PRINCIPAL }),
    }),
    services,
    service,
    signal: new AbortController().signal,
    timeoutMs: 1_000,
    timers,
    ...more,
  };
  return { child, model, timers };
}

const lookCall = new AIMessage({
  content: "",
  tool_calls: [{ id: "inner", name: "look", args: {}, type: "tool_call" }],
});

test("R32 a batch item runs on the executor's core: tools work, usage is counted once, no delegation tools", async () => {
  const { child, model } = item((request) =>
    resultsIn(request).length === 0 ? lookCall : textAnswer("42", { input: 3, output: 2 }),
  );
  const outcome = await runBatchChild(child);
  expect(outcome).toEqual({
    status: "completed",
    result: "42",
    error: null,
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
    stopReason: null,
  });
  expect(model.requests[0]?.tools.map((tool) => tool.name)).toEqual(["look"]);
});

test("R129 a batch item keeps no checkpoints, even where a saver is at hand", async () => {
  const saver = new MemorySaver();
  const config = { configurable: { thread_id: "t", __pregel_checkpointer: saver } };
  const { child } = item(() => textAnswer("42"), { config });
  expect((await runBatchChild(child)).status).toBe("completed");
  expect(saver.storage).toEqual({});
});

test("a cancelled item stops its child; one past its time is timed out", async () => {
  const abort = new AbortController();
  const waiting: Reply = (_request, config) =>
    new Promise((_, reject) => config.signal?.addEventListener("abort", () => reject(new Error("stopped"))));
  const cancelled = item(
    (request, config) => {
      queueMicrotask(() => abort.abort());
      return waiting(request, config);
    },
    { signal: abort.signal },
  );
  expect(await runBatchChild(cancelled.child)).toMatchObject({ status: "cancelled", result: null });
  const late = item((request, config) => {
    queueMicrotask(() => late.timers.advance(1_000));
    return waiting(request, config);
  });
  expect(await runBatchChild(late.child)).toMatchObject({
    status: "timed_out",
    error: "Execution timed out after 1 seconds",
  });
  expect(late.timers.pending()).toBe(0);
});

test("R98 P5 an item whose child says nothing is failed, and an unknown model is named", async () => {
  const { child } = item(() => textAnswer(""));
  expect(await runBatchChild(child)).toMatchObject({ status: "failed", error: "No response generated" });
  const unknown = item(() => textAnswer("x"), { definition: { ...definition(), model: "ghost" } });
  expect(await runBatchChild(unknown.child)).toMatchObject({ status: "failed", error: "there is no model 'ghost'" });
});
