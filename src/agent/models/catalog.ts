/**
 * The models an operator configured, by name. Owns which of them are usable (credentials present), which is the default,
 * and the check on every request. Built once an isolate.
 */
import type { ModelConfig } from "../../config.ts";
import { assertModelRequest } from "./assert-model-request.ts";
import { HeaderGates } from "./header-gate.ts";
import type { ChatModel, ModelCatalog } from "./model.ts";
import { createOpenAiModel } from "./openai.ts";
import { createScriptedModel, SCRIPTED_MODEL_NAME } from "./scripted.ts";
import type { Sleep } from "./sleep.ts";

export interface ModelCredentials {
  readonly openaiApiKey?: string | undefined;
  readonly openaiBaseUrl?: string | undefined;
  /** Wins over a configured `model`. */
  readonly openaiModel?: string | undefined;
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
}

type GatedOptions = ModelCatalogOptions & { readonly fetch: typeof fetch; readonly gates: HeaderGates };

/** Means the default, so it cannot name a model. */
const INHERIT = "inherit";

/** Throws on a name used twice or reserved: a configuration fault, found at start. */
export function createModelCatalog(options: ModelCatalogOptions): ModelCatalog {
  const models = new Map<string, ChatModel>();
  // Called without a receiver: workerd refuses its global `fetch` as a method of another object.
  const send: typeof fetch = options.fetch ?? ((input, init) => fetch(input, init));
  for (const model of buildModels({ ...options, fetch: send, gates: new HeaderGates() })) {
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
  const real = options.models.filter((model) => model.provider === "openai");
  const scripted = options.models.filter((model) => model.provider === "scripted").map((model) => model.name);
  if (!scripted.includes(SCRIPTED_MODEL_NAME)) scripted.push(SCRIPTED_MODEL_NAME);
  return [
    ...real.flatMap((model) => buildOpenAi(model, options)),
    ...scripted.map((name) => createScriptedModel({ ...options, name })),
  ];
}

function buildOpenAi(config: ModelConfig, options: GatedOptions): ChatModel[] {
  const apiKey = options.credentials.openaiApiKey?.trim();
  if (!apiKey) return [];
  const model = createOpenAiModel({
    ...options,
    name: config.name,
    apiKey,
    baseUrl: options.credentials.openaiBaseUrl,
    model: options.credentials.openaiModel || config.model,
    temperature: config.temperature,
    maxOutputTokens: config.max_output_tokens,
  });
  return [withAssertedRequests(model)];
}

function withAssertedRequests(model: ChatModel): ChatModel {
  return {
    ...model,
    async generate(request, config) {
      assertModelRequest(request);
      return model.generate(request, config);
    },
  };
}
