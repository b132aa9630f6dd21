/**
 * Any OpenAI-compatible provider, through `@langchain/openai`. Streams always, never retries (attempts.ts does), never
 * counts tokens. The adapter is built per generation, so that its `fetch`, ids and failure belong to that one exchange.
 * Runs in workerd and Node alike.
 */
import type { AIMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { ChatOpenAICompletions } from "@langchain/openai";
import { generateFromStream } from "./generate-from-stream.ts";
import type { HeaderGates } from "./header-gate.ts";
import { type ChatModel, ModelFailure, type ModelRequest, type ToolSpec } from "./model.ts";
import { OpenAiExchange } from "./openai-exchange.ts";
import { OpenAiStreamNormaliser } from "./openai-stream-normaliser.ts";

/** Always given, because the client library would otherwise read it from the process environment. */
export const DEFAULT_OPENAI_BASE_URL = "https://api.openai.com/v1";

/** Used when neither `OPENAI_MODEL` nor the configuration names a model. */
export const DEFAULT_OPENAI_MODEL = "gpt-4.1-mini";

export interface OpenAiModelOptions {
  readonly name: string;
  readonly apiKey: string;
  readonly baseUrl?: string | undefined;
  readonly model?: string | undefined;
  readonly temperature?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
  readonly modelIdleMs: number;
  readonly newId: () => string;
  readonly random: () => number;
  readonly now: () => number;
  readonly fetch: typeof fetch;
  readonly gates: HeaderGates;
}

export function createOpenAiModel(options: OpenAiModelOptions): ChatModel {
  return {
    name: options.name,
    provider: "openai",
    generate: (request, config) => generate(options, request, config),
  };
}

async function generate(
  options: OpenAiModelOptions,
  request: ModelRequest,
  config: RunnableConfig,
): Promise<AIMessage> {
  const normaliser = new OpenAiStreamNormaliser({ messageId: options.newId(), random: options.random });
  const exchange = new OpenAiExchange({
    fetch: options.gates.wrap(options.fetch, gateScope(config)),
    idleMs: options.modelIdleMs,
    now: options.now,
    normaliser,
  });
  try {
    return await generateFromStream(createAdapter(options, exchange), [...request.messages], config, {
      options: { tools: request.tools.map(toOpenAiTool) },
      providerCallIds: normaliser.providerCallIds,
      failure: () => exchange.failure,
    });
  } catch (error) {
    config.signal?.throwIfAborted();
    throw error instanceof ModelFailure ? error : (exchange.failure ?? error);
  }
}

/** The object a request is made from: its thread. Requests without one (batch items) share a scope. */
function gateScope(config: RunnableConfig): string {
  const threadId: unknown = config.configurable?.thread_id;
  return typeof threadId === "string" ? threadId : "";
}

function createAdapter(options: OpenAiModelOptions, exchange: OpenAiExchange): ChatOpenAICompletions {
  const adapter = new ChatOpenAICompletions({
    model: options.model || DEFAULT_OPENAI_MODEL,
    apiKey: options.apiKey,
    streaming: true,
    streamUsage: true,
    maxRetries: 0,
    ...(options.temperature !== undefined && { temperature: options.temperature }),
    ...(options.maxOutputTokens !== undefined && { maxTokens: options.maxOutputTokens }),
    configuration: { baseURL: options.baseUrl || DEFAULT_OPENAI_BASE_URL, fetch: exchange.fetch },
  });
  return withCleanWire(adapter);
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
