/**
 * The models an operator configured, by name. Owns which of them are usable (credentials present), which is the default,
 * and the check on every request. Built once an isolate.
 */
import type { ModelConfig } from "../../config.ts";
import { unreachable } from "../../domain/shared/assert.ts";
import { createAnthropicModel } from "./anthropic.ts";
import { assertModelRequest } from "./assert-model-request.ts";
import { HeaderGates } from "./header-gate.ts";
import type { ChatModel, ModelCatalog } from "./model.ts";
import { withoutImages } from "./image-block.ts";
import { createOpenAiModel } from "./openai.ts";
import { createScriptedModel, SCRIPTED_MODEL_NAME } from "./scripted.ts";
import type { Sleep } from "./sleep.ts";
import { createWorkersAiModel, type WorkersAiBinding } from "./workers-ai.ts";

export interface ModelCredentials {
  readonly openaiApiKey?: string | undefined;
  readonly openaiBaseUrl?: string | undefined;
  /** Wins over a configured `model`. */
  readonly openaiModel?: string | undefined;
  readonly anthropicApiKey?: string | undefined;
  readonly anthropicBaseUrl?: string | undefined;
  /** Wins over a configured `model`. */
  readonly anthropicModel?: string | undefined;
  /** Bound in deployed environments only. */
  readonly workersAi?: WorkersAiBinding | undefined;
}

export interface ModelCatalogOptions {
  readonly models: readonly ModelConfig[];
  readonly credentials: ModelCredentials;
  readonly modelIdleMs: number;
  readonly newId: () => string;
  readonly random: () => number;
  readonly now: () => number;
  readonly sleep?: Sleep;
  readonly fetch?: typeof fetch;
  /** For a process that opens further connections beside its model requests. */
  readonly gates?: HeaderGates;
}

type GatedOptions = ModelCatalogOptions & { readonly fetch: typeof fetch; readonly gates: HeaderGates };

/** Means the default, so it cannot name a model. */
const INHERIT = "inherit";

/** Throws on a name used twice or reserved: a configuration fault, found at start. */
export function createModelCatalog(options: ModelCatalogOptions): ModelCatalog {
  const models = new Map<string, ChatModel>();
  // Called without a receiver: workerd refuses its global `fetch` as a method of another object.
  const send: typeof fetch = options.fetch ?? ((input, init) => fetch(input, init));
  for (const model of buildModels({ ...options, fetch: send, gates: options.gates ?? new HeaderGates() })) {
    if (models.has(model.name) || model.name === INHERIT) throw new Error(`models: the name "${model.name}" is taken`);
    models.set(model.name, model);
  }
  const names = [...models.keys()];
  // Taken before any is given its own list: a fallback's fallbacks are not followed.
  const plain = new Map(models);
  for (const { name, fallbacks } of options.models) {
    const model = models.get(name);
    const usable = fallbacks.flatMap((each) => plain.get(each) ?? []);
    if (model !== undefined && usable.length > 0) models.set(name, { ...model, fallbacks: usable });
  }
  const defaultName = names[0] ?? SCRIPTED_MODEL_NAME;
  return {
    defaultName,
    find: (name) => models.get(name === undefined || name === INHERIT ? defaultName : name),
    names: () => names,
  };
}

/** Configured order, scripted ones behind all others; one called `scripted` is always there. */
function buildModels(options: GatedOptions): ChatModel[] {
  const scripted = options.models.filter((model) => model.provider === "scripted").map((model) => model.name);
  if (!scripted.includes(SCRIPTED_MODEL_NAME)) scripted.push(SCRIPTED_MODEL_NAME);
  return [
    ...options.models.flatMap((config) => {
      const model = buildModel(config, options);
      return model === undefined ? [] : [withUsableRequests({ ...model, streamBreak: config.stream_break })];
    }),
    ...scripted.map((name) => createScriptedModel({ ...options, name })),
  ];
}

/** `undefined` without its credentials. */
function buildModel(config: ModelConfig, options: GatedOptions): ChatModel | undefined {
  const { credentials } = options;
  const common = { ...options, ...toModelOptions(config) };
  switch (config.provider) {
    case "scripted":
      return undefined;
    case "openai": {
      const { openaiApiKey, openaiBaseUrl: baseUrl, openaiModel } = credentials;
      const apiKey = openaiApiKey?.trim();
      return apiKey ? createOpenAiModel({ ...common, apiKey, baseUrl, model: openaiModel || config.model }) : undefined;
    }
    case "anthropic": {
      const { anthropicApiKey, anthropicBaseUrl: baseUrl, anthropicModel } = credentials;
      const apiKey = anthropicApiKey?.trim();
      const model = anthropicModel || config.model;
      return apiKey ? createAnthropicModel({ ...common, apiKey, baseUrl, model }) : undefined;
    }
    case "workers-ai": {
      const { workersAi: binding } = credentials;
      return binding ? createWorkersAiModel({ ...common, binding, model: config.model ?? "" }) : undefined;
    }
    default:
      return unreachable(config.provider);
  }
}

function toModelOptions(config: ModelConfig) {
  return {
    name: config.name,
    temperature: config.temperature,
    maxOutputTokens: config.max_output_tokens,
    thinking: config.thinking,
    vision: config.vision,
    thinkingBudgetTokens: config.thinking_budget_tokens,
    alwaysThinks: config.always_thinks,
    reasoningEffort: config.reasoning_effort,
    reasoningEffortOff: config.reasoning_effort_off,
  };
}

function withUsableRequests(model: ChatModel): ChatModel {
  return {
    ...model,
    async generate(given, config) {
      const request = model.vision === true ? given : { ...given, messages: withoutImages(given.messages) };
      assertModelRequest(request);
      return model.generate(request, config);
    },
  };
}
