/**
 * `deputy.config.ts`: what an operator may set, with defaults and ranges (contracts, "deputy.config.ts").
 * Owns the schema and its errors; nothing here reads the environment. Keys are snake_case, as on the wire.
 */
import { z } from "zod";

const integer = (minimum: number, maximum: number) => z.int().min(minimum).max(maximum);
const NAME = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);

/** Each one that fails as well lets the user wait longer for the bad news. */
const MODEL_FALLBACKS_MAX = 4;

const modelSchema = z.strictObject({
  name: NAME,
  provider: z.enum(["openai", "scripted"]),
  /** The provider's model id; `OPENAI_MODEL` wins when set. */
  model: z.string().min(1).optional(),
  temperature: z.number().min(0).max(2).optional(),
  max_output_tokens: integer(1, 1_000_000).optional(),
  /** Asked once each, in order, when this model has no answer. One without credentials is passed over. */
  fallbacks: z.array(NAME).max(MODEL_FALLBACKS_MAX).default([]),
});

/** `scripted` is always there. */
const modelsSchema = z.array(modelSchema).superRefine((models, issues) => {
  const names = new Set(["scripted", ...models.map((model) => model.name)]);
  for (const [index, { name, fallbacks }] of models.entries()) {
    const wrong = fallbacks.find((each, at) => each === name || !names.has(each) || fallbacks.indexOf(each) !== at);
    if (wrong === undefined) continue;
    const message = `must name other models of this file, each once; '${wrong}' is none`;
    issues.addIssue({ code: "custom", path: [index, "fallbacks"], message });
  }
});

const llmCallSchema = z.strictObject({
  retry_max_attempts: integer(1, 10).default(3),
  retry_base_delay_ms: integer(1, 60_000).default(1_000),
  retry_cap_delay_ms: integer(1, 60_000).default(8_000),
  burst_retry_base_delay_ms: integer(1, 60_000).default(5_000),
  circuit: z
    .strictObject({
      failure_threshold: integer(1, 1_000).default(5),
      recovery_timeout_seconds: integer(1, 3_600).default(60),
    })
    .prefault({}),
});

const subagentDefinitionSchema = z.strictObject({
  description: z.string().min(1).max(4_000),
  system_prompt: z.string().min(1).max(100_000),
  tools: z.array(NAME).nullable().default(null),
  disallowed_tools: z.array(NAME).default(["task", "ask_clarification", "present_files"]),
  model: z.string().min(1).default("inherit"),
  max_turns: integer(1, 1_000).default(50),
  timeout_seconds: integer(1, 86_400).default(900),
  provider: z.enum(["spawn", "fork"]).default("spawn"),
  max_depth: integer(1, 3).default(3),
});

const subagentOverrideSchema = z.strictObject({
  timeout_seconds: integer(1, 86_400).optional(),
  max_turns: integer(1, 1_000).optional(),
  model: z.string().min(1).optional(),
});

const subagentsSchema = z.strictObject({
  /** Built-ins only; a custom agent names its own. */
  timeout_seconds: integer(1, 86_400).default(1_800),
  max_turns: integer(1, 1_000).nullable().default(null),
  max_total_per_run: integer(1, 50).default(6),
  agents: z.record(NAME, subagentOverrideSchema).default({}),
  custom_agents: z.record(NAME, subagentDefinitionSchema).default({}),
});

const subagentRuntimeSchema = z.strictObject({
  max_running: integer(1, 64).default(3),
  max_queued: integer(0, 10_000).default(64),
  admission_policy: z.enum(["queue", "reject"]).default("queue"),
  queue_timeout_seconds: integer(1, 86_400).default(300),
  class_weights: z.tuple([integer(1, 100), integer(1, 100)]).default([1, 1]),
});

const subagentBatchesSchema = z
  .strictObject({
    enabled: z.boolean().default(true),
    lease_seconds: integer(2, 600).default(120),
    max_items: integer(1, 5_000).default(5_000),
    default_live_items: integer(1, 10_000).default(100),
    max_live_items: integer(1, 10_000).default(1_000),
    default_running_items: integer(1, 64).default(3),
    max_running_items: integer(1, 64).default(64),
    max_attempts: integer(1, 10).default(3),
    result_chars_max: integer(1, 500_000).default(100_000),
    preview_chars: integer(0, 100_000).default(2_000),
  })
  .refine((batches) => batches.default_live_items <= batches.max_live_items, {
    path: ["default_live_items"],
    message: "must not exceed max_live_items",
  })
  .refine((batches) => batches.default_running_items <= batches.max_running_items, {
    path: ["default_running_items"],
    message: "must not exceed max_running_items",
  });

const runtimeSchema = z.strictObject({
  keep_alive_seconds: integer(1, 30).default(30),
  lead_max_turns: integer(1, 1_000).default(100),
  checkpoint_runs_kept: integer(1, 1_000).default(20),
  frames_ttl_seconds: integer(1, 604_800).default(3_600),
  frame_bytes_max: integer(65_536, 67_108_864).default(16_777_216),
  recovery_attempts: integer(1, 100).default(10),
  recovery_no_progress_seconds: integer(1, 86_400).default(300),
  recovery_out_of_memory: integer(1, 10).default(3),
  model_idle_seconds: integer(1, 600).default(60),
});

export const deputyConfigSchema = z.strictObject({
  models: modelsSchema.prefault([{ name: "openai", provider: "openai" }]),
  llm_call: llmCallSchema.prefault({}),
  subagents: subagentsSchema.prefault({}),
  subagent_runtime: subagentRuntimeSchema.prefault({}),
  subagent_batches: subagentBatchesSchema.prefault({}),
  runtime: runtimeSchema.prefault({}),
  tools: z
    .strictObject({
      /** Names of tools the lead may use; null means all. */
      allow: z.array(NAME).nullable().default(null),
      deny: z.array(NAME).default([]),
    })
    .prefault({}),
  agents: z
    .strictObject({
      /** Operator text added to the lead's system prompt. */
      lead_instructions: z.string().max(100_000).default(""),
    })
    .prefault({}),
  /** Graph id → compiled LangGraph graph or a factory given the run's config. `lead_agent` is always there. */
  graphs: z
    .record(
      NAME,
      z.custom<object>((value) => typeof value === "function" || typeof value === "object"),
    )
    .default({}),
});

export type DeputyConfigInput = z.input<typeof deputyConfigSchema>;
export type DeputyConfig = z.output<typeof deputyConfigSchema>;
export type ModelConfig = z.output<typeof modelSchema>;
export type SubagentDefinitionConfig = z.output<typeof subagentDefinitionSchema>;

export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Types the file; validation happens in `parseDeputyConfig` when the Worker starts. */
export function defineConfig(config: DeputyConfigInput): DeputyConfigInput {
  return config;
}

/** Unknown to typed, defaults applied. Throws `ConfigError` naming every bad field's path, value and allowed range. */
export function parseDeputyConfig(input: unknown): DeputyConfig {
  const parsed = deputyConfigSchema.safeParse(input);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => {
    const path = issue.path.map(String);
    const value = path.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], input);
    return `${path.join(".") || "(root)"}: ${issue.message} (got ${JSON.stringify(value)?.slice(0, 200) ?? "nothing"})`;
  });
  throw new ConfigError(`deputy.config.ts is invalid:\n  ${lines.join("\n  ")}`);
}
