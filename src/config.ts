/**
 * `deputy.config.ts`: what an operator may set, with defaults and ranges (contracts, "deputy.config.ts").
 * Owns the schema and its errors; nothing here reads the environment. Keys are snake_case, as on the wire.
 */
import { z } from "zod";

const integer = (minimum: number, maximum: number) => z.int().min(minimum).max(maximum);
const NAME = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);

/** Each one that fails as well lets the user wait longer for the bad news. */
const MODEL_FALLBACKS_MAX = 4;

/** How hard a model thinks, in the providers' words; not every model takes every one. */
const EFFORT = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

const modelSchema = z.strictObject({
  name: NAME,
  provider: z.enum(["openai", "anthropic", "workers-ai", "scripted"]),
  /** The provider's model id; `OPENAI_MODEL` and `ANTHROPIC_MODEL` win when set. */
  model: z.string().min(1).optional(),
  temperature: z.number().min(0).max(2).optional(),
  max_output_tokens: integer(1, 1_000_000).optional(),
  /** The model can think before it answers; a lead does unless its run says no, a child never. */
  thinking: z.boolean().default(false),
  /** `anthropic`: a budget, for models that take one; without it the model decides by itself (adaptive). */
  thinking_budget_tokens: integer(1_024, 1_000_000).optional(),
  /** `anthropic`: the model refuses to be told not to think. */
  always_thinks: z.boolean().default(false),
  /** Sent while the model thinks. */
  reasoning_effort: EFFORT.optional(),
  /** `openai`, `workers-ai`: sent while it does not, to models that think unless told. */
  reasoning_effort_off: EFFORT.optional(),
  /** The model reads images. To one that does not, a note is sent in an image's place. */
  vision: z.boolean().default(false),
  /** When an answer breaks off: asked for again, or gone on with where it stopped. */
  stream_break: z.enum(["retry", "continue"]).default("retry"),
  /** Asked once each, in order, when this model has no answer. One without credentials is passed over. */
  fallbacks: z.array(NAME).max(MODEL_FALLBACKS_MAX).default([]),
});

/** Anthropic's field is required there; every current model writes that much. */
export const ANTHROPIC_OUTPUT_TOKENS_DEFAULT = 32_000;

/** What a model's fields say of each other: the field, and what is wrong with it. */
function* findModelFaults(model: z.output<typeof modelSchema>): Generator<readonly [string, string]> {
  const { provider, thinking, thinking_budget_tokens: budget, reasoning_effort: effort } = model;
  const needThinking = ["thinking_budget_tokens", "always_thinks", "reasoning_effort", "reasoning_effort_off"] as const;
  for (const field of needThinking) {
    if (!thinking && model[field]) yield [field, "needs thinking: true"];
  }
  if (thinking && provider === "scripted") yield ["thinking", "the scripted model does not think"];
  if (model.stream_break === "continue" && provider === "scripted") {
    yield ["stream_break", "the scripted model does not go on with a broken answer"];
  }
  const isAnthropic = provider === "anthropic";
  for (const field of ["thinking_budget_tokens", "always_thinks"] as const) {
    if (!isAnthropic && model[field]) yield [field, "is for the provider anthropic"];
  }
  if (isAnthropic && model.reasoning_effort_off) yield ["reasoning_effort_off", "is not for the provider anthropic"];
  if (budget !== undefined && effort !== undefined) yield ["reasoning_effort", "excludes thinking_budget_tokens"];
  const room = model.max_output_tokens ?? ANTHROPIC_OUTPUT_TOKENS_DEFAULT;
  if (budget !== undefined && budget >= room) {
    yield ["thinking_budget_tokens", `must be below max_output_tokens, which is ${room}`];
  }
  if (provider === "workers-ai" && model.model === undefined) yield ["model", "is required for workers-ai"];
}

/** `scripted` is always there. */
const modelsSchema = z.array(modelSchema).superRefine((models, issues) => {
  for (const [index, model] of models.entries()) {
    for (const [field, message] of findModelFaults(model)) {
      issues.addIssue({ code: "custom", path: [index, field], message });
    }
  }
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

/** Bytes of a name are few and of a value enough for a token; hop-by-hop names are the connection's own. */
const HEADER_NAME =
  /^(?!(?:connection|upgrade|host|te|trailer|keep-alive|content-length|transfer-encoding|proxy-.*|sec-websocket-.*)$)[a-z0-9-]{1,64}$/;
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/;
/** Encrypted, or to this machine; neither user name nor fragment. */
const ACP_URL =
  /^(?:wss:\/\/[^\s/?#@\\]{1,255}|ws:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?)(?:[/?][^\s#\\]{0,2000})?$/;
const ABSOLUTE_PATH = /^(?:\/|[A-Za-z]:[\\/])[^\0]{0,1000}$/;
const ACP_HEADERS_MAX = 16;

const acpEndpointSchema = z.strictObject({
  url: z
    .string()
    .regex(ACP_URL, "must be wss:, or ws: to localhost, 127.0.0.1 or [::1], without user name and fragment"),
  headers: z
    .record(
      z.string().regex(HEADER_NAME, "header names are lower case, and not those of the connection itself"),
      z.string().regex(HEADER_VALUE, "header values are 1 to 4,096 visible ASCII characters and spaces"),
    )
    .refine((headers) => Object.keys(headers).length <= ACP_HEADERS_MAX, `at most ${ACP_HEADERS_MAX} headers`)
    .default({}),
  cwd: z.string().regex(ABSOLUTE_PATH, "must be an absolute path").default("/"),
  permission: z.enum(["reject", "allow"]).default("reject"),
});

const description = z.string().min(1).max(4_000);
const timeoutSeconds = integer(1, 86_400).default(900);

const subagentDefinitionSchema = z.discriminatedUnion("provider", [
  z.strictObject(
    {
      description,
      system_prompt: z.string().min(1).max(100_000),
      tools: z.array(NAME).nullable().default(null),
      disallowed_tools: z.array(NAME).default(["task", "ask_clarification", "present_files"]),
      model: z.string().min(1).default("inherit"),
      max_turns: integer(1, 1_000).default(50),
      timeout_seconds: timeoutSeconds,
      provider: z.enum(["spawn", "fork"]).default("spawn"),
      max_depth: integer(1, 3).default(3),
    },
    { error: refusedKeys("a subagent of this process takes no") },
  ),
  z.strictObject(
    { description, timeout_seconds: timeoutSeconds, provider: z.literal("acp"), acp: acpEndpointSchema },
    { error: refusedKeys("an agent reached by acp has its own prompt, tools, model and bounds; it takes no") },
  ),
]);

/** What a provider lacks is refused by name, never ignored. */
function refusedKeys(because: string): z.core.$ZodErrorMap {
  return ({ code, keys }) => (code === "unrecognized_keys" ? `${because} ${keys.join(", ")}` : undefined);
}

const subagentOverrideSchema = z.strictObject({
  timeout_seconds: integer(1, 86_400).optional(),
  max_turns: integer(1, 1_000).optional(),
  model: z.string().min(1).optional(),
});

const subagentsSchema = z
  .strictObject({
    /** Built-ins only; a custom agent names its own. */
    timeout_seconds: integer(1, 86_400).default(1_800),
    max_turns: integer(1, 1_000).nullable().default(null),
    max_total_per_run: integer(1, 50).default(6),
    agents: z.record(NAME, subagentOverrideSchema).default({}),
    custom_agents: z.record(NAME, subagentDefinitionSchema).default({}),
  })
  .superRefine(({ agents, custom_agents: custom }, issues) => {
    for (const [name, { model, max_turns: maxTurns }] of Object.entries(agents)) {
      if (custom[name]?.provider !== "acp" || (model === undefined && maxTurns === undefined)) continue;
      const message = "an agent reached by acp has its own model and bounds: only timeout_seconds can be laid over it";
      issues.addIssue({ code: "custom", path: ["agents", name], message });
    }
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

/** In D1, after the end; null keeps for ever. Frames have `runtime.frames_ttl_seconds`. */
const retentionSchema = z.strictObject({
  run_days: integer(1, 3_650).nullable().default(null),
  batch_days: integer(1, 3_650).nullable().default(null),
});

/** A host, or a host and a port, as a URL has them; brackets around IPv6. */
const WEBHOOK_HOST = /^(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?$/;

const webhooksSchema = z.strictObject({
  /** Receivers that are allowed whatever they are, over http too. */
  allowed_hosts: z
    .array(z.string().regex(WEBHOOK_HOST, "must be host or host:port, in lower case"))
    .max(100)
    .default([]),
  max_attempts: integer(1, 20).default(8),
  retry_base_seconds: integer(1, 3_600).default(10),
  timeout_seconds: integer(1, 30).default(10),
});

const toolListsSchema = z.strictObject({
  /** Null means all. */
  allow: z.array(NAME).nullable().default(null),
  deny: z.array(NAME).default([]),
});

/** What a person may decide about a call; the words of LangChain's human-in-the-loop clients. */
const approvalSchema = z.strictObject({
  decisions: z
    .array(z.enum(["approve", "edit", "reject"]))
    .min(1)
    .default(["approve", "edit", "reject"]),
  /** Shown with the question. */
  description: z.string().min(1).max(4_000).optional(),
});

const toolsSchema = z.strictObject({
  /** Tools that a person decides about before each call, by name. */
  approval: z.record(NAME, approvalSchema).default({}),
  /** For everybody: the lead, its children and batch items. */
  ...toolListsSchema.shape,
  /** For runs and batches of a key with that role, within what everybody may use. */
  roles: z.strictObject({ user: toolListsSchema.prefault({}), admin: toolListsSchema.prefault({}) }).prefault({}),
});

/** Where a client could not tell an agent's name from the id of a stored assistant. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const customAgentSchema = z.strictObject({
  description: z.string().min(1).max(4_000),
  /** Operator text: added to the system prompt of the agent's runs. */
  instructions: z.string().min(1).max(100_000),
  /** A name of `models`; absent for the default. */
  model: NAME.optional(),
  /** Null means all, `[]` none. A managed subagent may be named before it exists. */
  allowed_subagents: z.array(NAME).max(500).nullable().default(null),
  /** Exact names; null means all. */
  tools: z.array(NAME).nullable().default(null),
});

const agentsSchema = z.strictObject({
  /** Operator text added to the lead's system prompt. */
  lead_instructions: z.string().max(100_000).default(""),
  /** Assistants of the lead agent that everyone may run and nobody may change over the API. */
  custom: z.record(NAME, customAgentSchema).default({}),
});

/** A compiled LangGraph graph, an agent that holds one, or a factory given the run's config. */
const graphSchema = z.custom<object>(
  (value) => typeof value === "function" || (typeof value === "object" && value !== null),
  "must be a compiled LangGraph graph or a function that makes one",
);

const graphVersionSchema = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, "must match ^[A-Za-z0-9._-]{1,64}$");

/** A run is pinned to one of them; a deployment that keeps more keeps code that nobody runs. */
const PREVIOUS_VERSIONS_MAX = 20;

const versionedGraphSchema = z
  .strictObject({
    graph: graphSchema,
    version: graphVersionSchema,
    /** Version → graph: earlier ones that are still served, to the runs that were accepted with them. */
    previous: z.record(graphVersionSchema, graphSchema).default({}),
  })
  .refine(({ version, previous }) => !Object.hasOwn(previous, version), {
    path: ["previous"],
    message: "must not hold the current version",
  })
  .refine(({ previous }) => Object.keys(previous).length <= PREVIOUS_VERSIONS_MAX, {
    path: ["previous"],
    message: `must hold at most ${PREVIOUS_VERSIONS_MAX} versions`,
  });

interface ServedGraph {
  readonly graph: object;
  readonly version: string | undefined;
  readonly previous: Readonly<Record<string, object>>;
}

const servedGraphSchema = graphSchema.transform((entry, context): ServedGraph => {
  if (!isVersioned(entry)) return { graph: entry, version: undefined, previous: {} };
  const parsed = versionedGraphSchema.safeParse(entry);
  if (parsed.success) return parsed.data;
  for (const { path, message } of parsed.error.issues) context.addIssue({ code: "custom", path, message });
  return z.NEVER;
});

/** An agent may hold its graph as `graph` too; it says nothing of versions, and is no plain object. */
function isVersioned(entry: object): boolean {
  const isPlain = Object.getPrototypeOf(entry) === Object.prototype;
  return isPlain && (Object.hasOwn(entry, "version") || Object.hasOwn(entry, "previous"));
}

const deputyFieldsSchema = z.strictObject({
  models: modelsSchema.prefault([
    { name: "openai", provider: "openai", vision: true },
    { name: "anthropic", provider: "anthropic", vision: true },
  ]),
  llm_call: llmCallSchema.prefault({}),
  subagents: subagentsSchema.prefault({}),
  subagent_runtime: subagentRuntimeSchema.prefault({}),
  subagent_batches: subagentBatchesSchema.prefault({}),
  runtime: runtimeSchema.prefault({}),
  retention: retentionSchema.prefault({}),
  webhooks: webhooksSchema.prefault({}),
  tools: toolsSchema.prefault({}),
  agents: agentsSchema.prefault({}),
  /** Graph id → graph, or `{ graph, version, previous? }`. `lead_agent` is always there. */
  graphs: z.record(NAME, servedGraphSchema).prefault({}),
});

type DeputyFields = z.output<typeof deputyFieldsSchema>;

export const deputyConfigSchema = deputyFieldsSchema.superRefine(({ agents, graphs, models }, issues) => {
  const modelNames = ["scripted", ...models.map((model) => model.name)];
  for (const [name, { model }] of Object.entries(agents.custom)) {
    const path = ["agents", "custom", name];
    const conflict = agentNameConflict(name, graphs);
    if (conflict !== undefined) issues.addIssue({ code: "custom", path, message: conflict });
    if (model === undefined || modelNames.includes(model)) continue;
    const message = `must be a name of models: ${modelNames.join(", ")}`;
    issues.addIssue({ code: "custom", path: [...path, "model"], message });
  }
});

/** An agent's name is accepted as an assistant id, as graph ids are. */
function agentNameConflict(name: string, graphs: DeputyFields["graphs"]): string | undefined {
  if (name === "lead_agent" || Object.hasOwn(graphs, name)) return "must not be the id of a graph";
  return UUID.test(name) ? "must not look like the id of a stored assistant" : undefined;
}

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
    return `${path.join(".") || "(root)"}: ${issue.message} (got ${path.includes("headers") ? "a secret" : showValue(value)})`;
  });
  throw new ConfigError(`deputy.config.ts is invalid:\n  ${lines.join("\n  ")}`);
}

/** Headers are secrets, and an error goes to the log. */
function showValue(value: unknown): string {
  const json = JSON.stringify(value, (key, inner: unknown) => (key === "headers" ? "secrets" : inner));
  return json?.slice(0, 200) ?? "nothing";
}
