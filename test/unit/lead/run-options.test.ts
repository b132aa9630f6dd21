import { HumanMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { parseDeputyConfig, type DeputyConfigInput } from "../../../src/config.ts";
import { assembleLeadAgent } from "../../../src/agent/lead/assemble-lead-agent.ts";
import { resolveRunOptions } from "../../../src/agent/lead/run-options.ts";
import type { DelegationLimits } from "../../../src/domain/delegation/delegation-limit.ts";
import { leadFixture } from "../../support/lead-fixture.ts";
import { catalogOf, ReplyModel, textAnswer } from "../../support/reply-model.ts";

const models = catalogOf(
  new ReplyModel(() => textAnswer("one"), "first"),
  new ReplyModel(() => textAnswer("two"), "second"),
);

function resolve(configurable: Record<string, unknown>, { deputy = {}, maxRunning = 3, context = {} }: Over = {}) {
  return resolveRunOptions({ configurable, context } as never, {
    deputy: parseDeputyConfig(deputy),
    models,
    maxRunning,
  });
}

interface Over {
  readonly deputy?: DeputyConfigInput;
  readonly maxRunning?: number;
  readonly context?: Record<string, unknown>;
}

describe("R189 the numbers of a run", () => {
  test.each([
    [{}, { maxConcurrent: 3, maxTotal: 6 }, {}],
    [{ max_concurrent_subagents: 2, max_total_subagents: 50 }, { maxConcurrent: 2, maxTotal: 50 }, {}],
    [{ max_total_subagents: 1 }, { maxConcurrent: 3, maxTotal: 1 }, {}],
    [
      { max_total_subagents: 51 },
      { maxConcurrent: 3, maxTotal: 50 },
      { max_total_subagents: { requested: 51, used: 50 } },
    ],
    [{ max_total_subagents: 0 }, { maxConcurrent: 3, maxTotal: 1 }, { max_total_subagents: { requested: 0, used: 1 } }],
    [
      { max_concurrent_subagents: 65, max_total_subagents: -4 },
      { maxConcurrent: 3, maxTotal: 1 },
      { max_concurrent_subagents: { requested: 65, used: 3 }, max_total_subagents: { requested: -4, used: 1 } },
    ],
    [
      { max_concurrent_subagents: 4 },
      { maxConcurrent: 3, maxTotal: 6 },
      { max_concurrent_subagents: { requested: 4, used: 3 } },
    ],
    [{ max_concurrent_subagents: null, max_total_subagents: null }, { maxConcurrent: 3, maxTotal: 6 }, {}],
    [
      { max_total_subagents: "many" },
      { maxConcurrent: 3, maxTotal: 6 },
      { max_total_subagents: { requested: "many", used: 6 } },
    ],
  ])("%j gives %j and tells %j", (asked, limits, adjusted) => {
    const run = resolve(asked);
    expect(run.limits).toEqual(limits);
    expect(run.adjusted).toEqual(adjusted);
  });

  test("R40 six by default, the operator's number when there is one, fifty at most", () => {
    expect(resolve({}).limits.maxTotal).toBe(6);
    expect(resolve({}, { deputy: { subagents: { max_total_per_run: 11 } } }).limits.maxTotal).toBe(11);
    expect(() => parseDeputyConfig({ subagents: { max_total_per_run: 51 } })).toThrow(/max_total_per_run.*<=50/s);
    expect(() => parseDeputyConfig({ subagents: { max_total_per_run: 0 } })).toThrow(/max_total_per_run.*>=1/s);
  });

  test.each([
    [1, undefined, 1],
    [64, undefined, 64],
    [64, 64, 64],
    [64, 200, 64],
    [200, undefined, 64],
    [5, 2, 2],
    [2, 5, 2],
  ])("R38 concurrency is the least of max_running %j, the request %j and 64: %j", (maxRunning, requested, used) => {
    const asked = requested === undefined ? {} : { max_concurrent_subagents: requested };
    expect(resolve(asked, { maxRunning }).limits.maxConcurrent).toBe(used);
  });
});

describe("R38 R39 one resolution", () => {
  test("prompt, limit hook and `task` share one object of limits", () => {
    const { descriptor } = leadFixture({ configurable: { max_concurrent_subagents: 2 } });
    const limit = descriptor.parts.hooks.find((hook) => hook.name === "subagent_limit");
    const task = descriptor.parts.tools.find((tool) => tool.name === "task");
    expect((limit as { limits?: DelegationLimits }).limits).toBe(descriptor.limits);
    expect((task as { limits?: DelegationLimits }).limits).toBe(descriptor.limits);
    expect(descriptor.parts.systemPrompt).toContain("AT MOST 2 `task` CALLS IN ONE ANSWER");
  });

  test("a configuration that promises more than the live controller runs is not believed", () => {
    const { options, config } = leadFixture({ deputy: { subagent_runtime: { max_running: 2 } } });
    const newer = parseDeputyConfig({ subagent_runtime: { max_running: 9 } });
    const { descriptor } = assembleLeadAgent(config, { ...options, deputy: newer });
    expect(options.admission.snapshot().max_running).toBe(2);
    expect(descriptor.limits.maxConcurrent).toBe(2);
    expect(descriptor.parts.systemPrompt).toContain("AT MOST 2 `task` CALLS IN ONE ANSWER");
  });
});

describe("R186 R188 choices", () => {
  test("a model by its name; one that is not there is the default, and told", () => {
    expect(resolve({ model_name: "second" })).toMatchObject({ modelName: "second", adjusted: {} });
    expect(resolve({}).modelName).toBeUndefined();
    const gone = resolve({ model_name: "gone" });
    expect(gone.modelName).toBeUndefined();
    expect(gone.adjusted).toEqual({ model_name: { requested: "gone", used: "first" } });
  });

  test("thinking and delegation are on unless switched off", () => {
    expect(resolve({})).toMatchObject({ thinkingEnabled: true, subagentEnabled: true });
    const off = resolve({ thinking_enabled: false, subagent_enabled: false });
    expect(off).toMatchObject({ thinkingEnabled: false, subagentEnabled: false, adjusted: {} });
    expect(resolve({ subagent_enabled: "no" })).toMatchObject({
      subagentEnabled: true,
      adjusted: { subagent_enabled: { requested: "no", used: true } },
    });
  });

  test("R186 thinking asked of a model that cannot is told; it need not be asked of one that can", () => {
    const able = catalogOf(Object.assign(new ReplyModel(() => textAnswer("one"), "able"), { thinking: true }));
    const ask = (configurable: Record<string, unknown>, from = able) =>
      resolveRunOptions({ configurable }, { deputy: parseDeputyConfig({}), models: from, maxRunning: 3 });
    for (const asked of [{}, { thinking_enabled: true }]) {
      expect(ask(asked)).toMatchObject({ thinkingEnabled: true, adjusted: {} });
    }
    expect(ask({ thinking_enabled: "yes" }).adjusted).toEqual({ thinking_enabled: { requested: "yes", used: true } });
    const told = { thinking_enabled: { requested: true, used: false } };
    expect(ask({ thinking_enabled: true }, models)).toMatchObject({ thinkingEnabled: false, adjusted: told });
    for (const asked of [{}, { thinking_enabled: false }]) expect(ask(asked, models).adjusted).toEqual({});
  });

  test("context wins over configurable, key by key", () => {
    const asked = { max_total_subagents: 9, max_concurrent_subagents: 2, subagent_enabled: true };
    const run = resolve(asked, { context: { max_total_subagents: 4, subagent_enabled: false } });
    expect(run.limits).toEqual({ maxConcurrent: 2, maxTotal: 4 });
    expect(run.subagentEnabled).toBe(false);
  });

  test("R188 switched off, neither tool, guidance nor limit hook is left", async () => {
    const model = new ReplyModel(() => textAnswer("done"));
    const off = leadFixture({ models: catalogOf(model), configurable: { subagent_enabled: false } });
    await off.graph.invoke({ messages: [new HumanMessage({ id: "h", content: "go" })] }, off.config);
    const [request] = model.requests;
    expect(request?.tools.map((tool) => tool.name)).not.toContain("task");
    expect(request?.messages[0]?.text).not.toMatch(/subagent_system|HARD LIMITS/);
    expect(off.descriptor.hooks).not.toContain("subagent_limit");
  });

  test("an option of an unknown name does nothing: the same prompt, tools, hooks and limits", () => {
    const plain = leadFixture().descriptor;
    const { descriptor } = leadFixture({ configurable: { max_subagents: 40, plan_mode: true, "x-tenant": "a" } });
    const { parts: _a, ...told } = descriptor;
    const { parts: _b, ...expected } = plain;
    expect(told).toEqual(expected);
    expect(resolve({ max_subagents: 40 }).adjusted).toEqual({});
  });
});
