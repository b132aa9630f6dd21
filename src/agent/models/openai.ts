/**
 * Any OpenAI-compatible provider, through `@langchain/openai`. Streams always, never retries (attempts.ts does), never
 * counts tokens. The adapter is built per generation, so that its `fetch`, ids and failure belong to that one exchange.
 * Runs in workerd and Node alike.
 */
import type { AIMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { ChatOpenAICompletions } from "@langchain/openai";
import { withBegunAnswer } from "./continued-text.ts";
import { generateFromStream } from "./generate-from-stream.ts";
import type { ChatModel, ModelRequest, ToolSpec } from "./model.ts";
import { OpenAiStreamNormaliser } from "./openai-stream-normaliser.ts";
import {
  type EventWire,
  exchangeBehindGate,
  type ProviderExchange,
  type ProviderOptions,
} from "./provider-exchange.ts";

/** Always given, because the client library would otherwise read it from the process environment. */
export const DEFAULT_OPENAI_BASE_URL = "https://api.openai.com/v1";

/** Used when neither `OPENAI_MODEL` nor the configuration names a model. */
export const DEFAULT_OPENAI_MODEL = "gpt-4.1-mini";

/** What one model of the OpenAI form is sent with every request. */
export interface OpenAiTuning {
  readonly temperature?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
  readonly thinking?: boolean;
  /** Sent while thinking is on; and while it is off, for models that think unless told. Both need `thinking`. */
  readonly reasoningEffort?: string | undefined;
  readonly reasoningEffortOff?: string | undefined;
}

export interface OpenAiModelOptions extends ProviderOptions, OpenAiTuning {
  readonly apiKey: string;
  readonly baseUrl?: string | undefined;
  readonly model?: string | undefined;
  readonly vision?: boolean;
}

export function createOpenAiModel(options: OpenAiModelOptions): ChatModel {
  const { name, thinking = false, vision = false, apiKey, baseUrl, newId, random } = options;
  return {
    name,
    provider: "openai",
    thinking,
    vision,
    generate: (request, config) =>
      generateInOpenAiForm(
        {
          ...options,
          model: options.model || DEFAULT_OPENAI_MODEL,
          adapter: { apiKey, baseUrl: baseUrl || DEFAULT_OPENAI_BASE_URL },
          normaliser: new OpenAiStreamNormaliser({
            messageId: request.begun?.messageId ?? newId(),
            random,
            begun: request.begun?.text,
          }),
        },
        request,
        config,
      ),
  };
}

/** One generation of one model, over whatever its `fetch` reaches. */
export interface OpenAiCall extends ProviderOptions, OpenAiTuning {
  /** The provider's id. */
  readonly model: string;
  readonly adapter: { readonly apiKey: string; readonly baseUrl: string };
  readonly normaliser: OpenAiStreamNormaliser;
}

const OPENAI_WIRE: EventWire = {
  toFrame: (event) => `data: ${JSON.stringify(event)}\n\n`,
  end: "data: [DONE]\n\n",
};

export async function generateInOpenAiForm(
  call: OpenAiCall,
  request: ModelRequest,
  config: RunnableConfig,
): Promise<AIMessage> {
  const { normaliser } = call;
  return exchangeBehindGate(call, config, {
    normaliser,
    wire: OPENAI_WIRE,
    generate: (exchange) =>
      generateFromStream(
        createAdapter(call, request, exchange),
        withBegunAnswer(request.messages, request.begun),
        config,
        {
          options: { tools: request.tools.map(toOpenAiTool) },
          providerCallIds: normaliser.providerCallIds,
          failure: () => exchange.failure,
          hasCalls: () => normaliser.hasCalls,
        },
      ),
  });
}

function createAdapter(call: OpenAiCall, request: ModelRequest, exchange: ProviderExchange): ChatOpenAICompletions {
  const { model, adapter, maxOutputTokens } = call;
  return withCleanWire(
    new ChatOpenAICompletions({
      model,
      apiKey: adapter.apiKey,
      streaming: true,
      streamUsage: true,
      maxRetries: 0,
      ...toThinkingFields(call, call.thinking === true && request.thinking === true),
      ...(maxOutputTokens !== undefined && { maxTokens: maxOutputTokens }),
      configuration: { baseURL: adapter.baseUrl, fetch: exchange.fetch },
    }),
  );
}

/** `reasoning_effort` where the run thinks and the configuration names none. */
const DEFAULT_REASONING_EFFORT = "medium";

/** Models that think take no temperature. */
function toThinkingFields({ thinking = false, temperature, ...tuning }: OpenAiTuning, thinks: boolean) {
  const { reasoningEffort = DEFAULT_REASONING_EFFORT, reasoningEffortOff } = tuning;
  const effort = thinks ? reasoningEffort : reasoningEffortOff;
  return {
    ...(!thinks && temperature !== undefined && { temperature }),
    // Not through the adapter's own option, which sends it for models of OpenAI's names only.
    ...(thinking && effort !== undefined && { modelKwargs: { reasoning_effort: effort } }),
  };
}

function toOpenAiTool(tool: ToolSpec) {
  const { name, description, parameters } = tool;
  return { type: "function" as const, function: { name, description, parameters } };
}

interface WireMessage {
  readonly role: string;
  readonly content?: string | readonly unknown[] | null;
  readonly name?: string;
  readonly tool_calls?: readonly unknown[];
}
interface WireRequest {
  readonly messages: readonly WireMessage[];
}
type Send = (request: WireRequest, options: unknown) => Promise<unknown>;

/** What the adapter puts on the wire that strict providers refuse, taken out just before it is sent. */
function withCleanWire(adapter: ChatOpenAICompletions): ChatOpenAICompletions {
  const send = adapter.completionWithRetry.bind(adapter) as unknown as Send;
  const sendClean: Send = (request, options) =>
    send({ ...request, messages: request.messages.map(toCleanMessage) }, options);
  return Object.assign(adapter, { completionWithRetry: sendClean });
}

/** A tool message has no `name` there, and an assistant message that only calls has no content, not an empty one. */
function toCleanMessage({ name, ...message }: WireMessage): WireMessage {
  const named = name === undefined || message.role === "tool" ? message : { ...message, name };
  if (message.role !== "assistant" || !message.tool_calls?.length) return named;
  return message.content?.length ? named : { ...named, content: null };
}
