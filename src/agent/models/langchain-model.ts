/**
 * Any streaming chat model of LangChain behind the model port: for callers who bring their own.
 * Owns what such a model leaves open: ids of calls, the finish reason, tools in the form every adapter reads. Retries
 * are the model's own (`maxRetries`) before they are ours. Stricter than LangChain: an answer must say something.
 * The model may come from another copy of LangChain than ours, so nothing here asks for a class.
 */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type AIMessage } from "@langchain/core/messages";
import type { ToolCallChunk } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { assertModelRequest } from "./assert-model-request.ts";
import { mintCallId } from "./call-id.ts";
import { keptThinking, type LangChainIdentity, toLangChainMessages } from "./langchain-messages.ts";
import { toAnswer } from "./model-answer.ts";
import { type ChatModel, ModelFailure, type ModelRequest, type ToolSpec } from "./model.ts";
import { withPartialText } from "./partial-text.ts";
import { readRetryAfterMs } from "./provider-failure.ts";
import { isBlank } from "./request-rules.ts";
import { AnswerSize } from "./stream-normaliser.ts";

export interface LangChainModelPorts {
  readonly newId: () => string;
  readonly random: () => number;
}

export function fromLangChainModel(model: BaseChatModel, ports: LangChainModelPorts): ChatModel {
  const identity = { name: nameOf(model), provider: model._llmType() };
  return {
    ...identity,
    async generate(request, config) {
      assertModelRequest(request);
      const messages = toLangChainMessages(request.messages, identity);
      const chunk = await gather(bound(model, request.tools), messages, config);
      const isTaken = request.messages.some(({ id }) => id === chunk.id);
      return answerOf(chunk, { identity, ports, isTaken });
    },
  };
}

/** Its provider's id, where it has one: a class name would be the same for two models, and so would their breaker. */
function nameOf(model: BaseChatModel): string {
  const { model: id } = model as { model?: unknown };
  return typeof id === "string" && id !== "" ? id : model.getName();
}

export function isLangChainModel(model: unknown): model is BaseChatModel {
  return typeof model === "object" && model !== null && typeof (model as BaseChatModel)._llmType === "function";
}

type Streaming = Pick<ReturnType<NonNullable<BaseChatModel["bindTools"]>>, "stream">;

function bound(model: BaseChatModel, tools: readonly ToolSpec[]): Streaming {
  if (tools.length === 0) return model;
  if (model.bindTools === undefined) throw new ModelFailure("provider", `the model ${model.getName()} takes no tools`);
  const specs = tools.map((spec) => ({ type: "function" as const, function: { ...spec } }));
  return model.bindTools(specs);
}

async function gather(
  model: Streaming,
  messages: ModelRequest["messages"],
  config: RunnableConfig,
): Promise<AIMessageChunk> {
  const { callbacks, tags, metadata, configurable, signal } = config;
  const options = { callbacks, tags, metadata, configurable, signal };
  const size = new AnswerSize();
  let whole: AIMessageChunk | undefined;
  try {
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    for await (const part of await model.stream([...messages], given)) {
      const chunk = toChunk(part);
      size.add(charsOf(chunk));
      whole = whole === undefined ? chunk : whole.concat(chunk);
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw withPartialText(toFailure(error), whole?.text ?? "");
  }
  signal?.throwIfAborted();
  if (whole === undefined) throw new ModelFailure("truncated", "the answer ended before it began");
  return whole;
}

function charsOf({ text, tool_call_chunks: calls = [] }: AIMessageChunk): number {
  return calls.reduce((sum, { args = "" }) => sum + args.length, text.length);
}

/** A model that cannot stream gives one whole message. */
function toChunk(part: AIMessageChunk | AIMessage): AIMessageChunk {
  if ("concat" in part) return part;
  const { content, id, additional_kwargs, response_metadata, usage_metadata, tool_calls = [] } = part;
  return new AIMessageChunk({
    content,
    tool_calls,
    additional_kwargs,
    response_metadata,
    ...(id === undefined ? {} : { id }),
    ...(usage_metadata === undefined ? {} : { usage_metadata }),
  });
}

/** In pieces, or whole where the adapter has parsed them already. */
function callsOf({ tool_call_chunks: pieces = [], tool_calls: whole = [] }: AIMessageChunk): ToolCallChunk[] {
  if (pieces.length > 0) return pieces;
  return whole.map(({ id, name, args }, index) => {
    const named = { type: "tool_call_chunk" as const, index, name, args: JSON.stringify(args) };
    return id === undefined ? named : { ...named, id };
  });
}

interface AnswerParts {
  readonly identity: LangChainIdentity;
  readonly ports: LangChainModelPorts;
  /** Whether a message of the conversation has the id already: some providers give every answer the same. */
  readonly isTaken: boolean;
}

/** The chunk's id is kept where it is new: its tokens have been streamed under it. */
function answerOf(chunk: AIMessageChunk, { identity, ports, isTaken }: AnswerParts): AIMessage {
  const providerCallIds: Record<string, string> = {};
  const pieces = callsOf(chunk);
  const reason = finishReason(chunk, pieces.length > 0);
  const calls = pieces.map((call) => {
    const id = mintCallId(ports.random);
    if (call.id !== undefined && call.id !== "") providerCallIds[id] = call.id;
    // A call without arguments has no piece of them; one that was cut has none yet.
    const isBare = isBlank(call.args ?? "") && reason !== "length";
    return { ...call, id, ...(isBare && { args: "{}" }) };
  });
  const regular = {
    text: chunk.text,
    tool_call_chunks: calls,
    additional_kwargs: { ...chunk.additional_kwargs, ...keptThinking(chunk.content, identity) },
    response_metadata: { model_name: identity.name, ...chunk.response_metadata, finish_reason: reason },
    usage_metadata: chunk.usage_metadata,
  } as unknown as AIMessageChunk;
  return toAnswer({ id: isTaken || !chunk.id ? ports.newId() : chunk.id, chunk: regular, providerCallIds });
}

/** Providers name the end of an answer in their own words; a stream that ended by itself has ended. */
const FINISH_REASONS: Readonly<Record<string, string>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  tool_use: "tool_calls",
  max_tokens: "length",
  MAX_TOKENS: "length",
  refusal: "content_filter",
  SAFETY: "content_filter",
};

function finishReason({ response_metadata: said, additional_kwargs: kept }: AIMessageChunk, calls: boolean): string {
  const named = [said["finish_reason"], said["stop_reason"], kept["stop_reason"], said["finishReason"]];
  const reason = named.find((each): each is string => typeof each === "string" && each !== "");
  return reason === undefined ? (calls ? "tool_calls" : "stop") : (FINISH_REASONS[reason] ?? reason);
}

function toFailure(error: unknown): unknown {
  if (error instanceof ModelFailure) return error;
  if (!(error instanceof Error)) return new ModelFailure("provider", String(error), { cause: error });
  const { status, code, headers } = error as { status?: unknown; code?: unknown; headers?: unknown };
  return new ModelFailure("provider", error.message, {
    cause: error,
    ...(typeof status === "number" ? { status } : {}),
    ...(typeof code === "string" ? { code } : {}),
    ...(headers instanceof Headers ? { retryAfterMs: readRetryAfterMs(headers, Date.now()) } : {}),
  });
}
