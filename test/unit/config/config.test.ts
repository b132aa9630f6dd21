import { describe, expect, it } from "vitest";
import configuration from "../../../deputy.config.ts";
import { ConfigError, defineConfig, parseDeputyConfig } from "../../../src/config.ts";
import { readConfig } from "../../../src/env.ts";

function failure(input: unknown): string {
  try {
    parseDeputyConfig(input);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  throw new Error("accepted");
}

describe("deputy.config.ts", () => {
  it("has the documented defaults", () => {
    const config = parseDeputyConfig({});
    expect(config.subagent_runtime).toEqual({
      max_running: 3,
      max_queued: 64,
      admission_policy: "queue",
      queue_timeout_seconds: 300,
      class_weights: [1, 1],
    });
    expect(config.subagent_batches).toMatchObject({ lease_seconds: 120, max_items: 5_000, max_attempts: 3 });
    expect(config.subagents).toMatchObject({ timeout_seconds: 1_800, max_total_per_run: 6 });
    expect(config.llm_call).toEqual({
      retry_max_attempts: 3,
      retry_base_delay_ms: 1_000,
      retry_cap_delay_ms: 8_000,
      burst_retry_base_delay_ms: 5_000,
      circuit: { failure_threshold: 5, recovery_timeout_seconds: 60 },
    });
    expect(config.runtime).toMatchObject({ keep_alive_seconds: 30, lead_max_turns: 100, frames_ttl_seconds: 3_600 });
  });

  it("accepts the file that ships", () => {
    const flags = { fallbacks: [], stream_break: "retry", thinking: false, always_thinks: false, vision: true };
    const models = [
      { name: "openai", provider: "openai", ...flags },
      { name: "anthropic", provider: "anthropic", ...flags },
    ];
    expect(parseDeputyConfig(configuration).models).toEqual(models);
    expect(parseDeputyConfig({}).models).toEqual(models);
  });

  it.each([
    [{ subagent_runtime: { max_running: 65 } }, ["subagent_runtime.max_running", "<=64", "got 65"]],
    [{ subagent_runtime: { max_running: true } }, ["subagent_runtime.max_running", "got true"]],
    [{ subagent_batches: { lease_seconds: 1 } }, ["subagent_batches.lease_seconds", ">=2", "got 1"]],
    [{ llm_call: { retry_max_attempts: 11 } }, ["llm_call.retry_max_attempts", "<=10", "got 11"]],
    [{ llm_call: { circuit: { failure_threshold: 0 } } }, ["llm_call.circuit.failure_threshold", ">=1", "got 0"]],
    [{ models: [{ name: "a", provider: "openai", fallbacks: ["b"] }] }, ["models.0.fallbacks", "'b' is none"]],
    [{ models: [{ name: "a", provider: "openai", fallbacks: ["a"] }] }, ["models.0.fallbacks", "'a' is none"]],
    [
      { models: [{ name: "a", provider: "openai", fallbacks: ["scripted", "scripted"] }] },
      ["models.0.fallbacks", "each once"],
    ],
    [{ runtime: { keep_alive_seconds: 31 } }, ["runtime.keep_alive_seconds", "<=30", "got 31"]],
    [{ subagents: { max_total_per_run: 0 } }, ["subagents.max_total_per_run", ">=1", "got 0"]],
    [
      { subagents: { custom_agents: { helper: { description: "d" } } } },
      ["subagents.custom_agents.helper.system_prompt"],
    ],
    [{ models: [{ name: "m", provider: "carrier-pigeon" }] }, ["models.0.provider", "openai", "scripted"]],
    [{ colour: "blue" }, ["colour"]],
    [{ subagent_batches: { default_live_items: 50, max_live_items: 10 } }, ["default_live_items", "max_live_items"]],
  ])("refuses %j, naming path, value and range", (input, parts) => {
    const message = failure(input);
    for (const part of parts) expect(message).toContain(part);
  });

  const anthropic = { name: "a", provider: "anthropic", thinking: true };
  it.each([
    [{ ...anthropic, thinking: false, reasoning_effort: "low" }, ["models.0.reasoning_effort", "thinking: true"]],
    [{ ...anthropic, thinking: false, always_thinks: true }, ["models.0.always_thinks", "thinking: true"]],
    [{ ...anthropic, thinking_budget_tokens: 1_023 }, ["models.0.thinking_budget_tokens", ">=1024"]],
    [
      { ...anthropic, thinking_budget_tokens: 2_000, max_output_tokens: 2_000 },
      ["models.0.thinking_budget_tokens", "below max_output_tokens, which is 2000"],
    ],
    [{ ...anthropic, thinking_budget_tokens: 32_000 }, ["below max_output_tokens, which is 32000"]],
    [{ ...anthropic, thinking_budget_tokens: 2_000, reasoning_effort: "low" }, ["excludes thinking_budget_tokens"]],
    [{ ...anthropic, reasoning_effort_off: "none" }, ["models.0.reasoning_effort_off", "anthropic"]],
    [{ ...anthropic, reasoning_effort: "hard" }, ["models.0.reasoning_effort", "xhigh"]],
    [
      { ...anthropic, provider: "openai", thinking_budget_tokens: 2_000 },
      ["models.0.thinking_budget_tokens", "for the provider anthropic"],
    ],
    [{ name: "s", provider: "scripted", thinking: true }, ["models.0.thinking", "does not think"]],
    [{ name: "w", provider: "workers-ai" }, ["models.0.model", "required for workers-ai"]],
  ])("refuses a model whose fields contradict each other: %j (R166)", (model, parts) => {
    const message = failure({ models: [model] });
    for (const part of parts) expect(message).toContain(part);
  });

  it("takes a model's thinking and vision flags, with what its provider needs (R166)", () => {
    const models = [
      { ...anthropic, thinking_budget_tokens: 4_000, max_output_tokens: 4_001, vision: true },
      { name: "b", provider: "openai" as const, thinking: true, reasoning_effort: "high" as const },
      { name: "c", provider: "workers-ai" as const, model: "@cf/x/y" },
    ];
    expect(parseDeputyConfig({ models }).models.map(({ thinking, vision }) => [thinking, vision])).toEqual([
      [true, true],
      [true, false],
      [false, false],
    ]);
  });

  it("names every bad field, not only the first", () => {
    const message = failure({ runtime: { keep_alive_seconds: 0, lead_max_turns: 0 } });
    expect(message).toContain("runtime.keep_alive_seconds");
    expect(message).toContain("runtime.lead_max_turns");
  });

  it("lays DEPUTY_OVERRIDES over the file, section by section, and checks the result", () => {
    const base = defineConfig({ runtime: { lead_max_turns: 7, keep_alive_seconds: 9 } });
    const over = readConfig(base, { DEPUTY_OVERRIDES: '{"runtime":{"keep_alive_seconds":1}}' });
    expect(over.runtime).toMatchObject({ lead_max_turns: 7, keep_alive_seconds: 1 });
    expect(() => readConfig(base, { DEPUTY_OVERRIDES: "[1]" })).toThrow("one JSON object");
    expect(() => readConfig(base, { DEPUTY_OVERRIDES: '{"runtime":{"keep_alive_seconds":99}}' })).toThrow("<=30");
  });
});
