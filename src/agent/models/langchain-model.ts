/**
 * Any streaming chat model of LangChain behind the model port: for callers who bring their own.
 * Owns what such a model leaves open: ids of calls, the finish reason, tools in the form every adapter reads. Retries
 * are the model's own (`maxRetries`) before they are ours. Stricter than LangChain: an answer must say something.
 */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type AIMessage } from "@langchain/core/messages";
import type { ToolCallChunk } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import { assertModelRequest } from "./assert-model-request.ts";
import { mintCallId } from "./call-id.ts";
import { toAnswer } from "./model-answer.ts";
import { type ChatModel, ModelFailure, type ModelRequest, type ToolSpec } from "./model.ts";
import { withPartialText } from "./partial-text.ts";

export interface LangChainModelPorts {
  readonly newId: () => string;
  readonly random: () => number;
}

export function fromLangChainModel(model: BaseChatModel, ports: LangChainModelPorts): ChatModel {
  return {
    name: model.getName(),
    provider: model._llmType(),
    async generate(request, config) {
      assertModelRequest(request);
      return answerOf(await gather(bound(model, request.tools), request, config), ports);
    },
  };
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

async function gather(model: Streaming, request: ModelRequest, config: RunnableConfig): Promise<AIMessageChunk> {
  const { callbacks, tags, metadata, configurable, signal } = config;
  const options = { callbacks, tags, metadata, configurable, signal };
  let whole: AIMessageChunk | undefined;
  try {
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    for await (const part of await model.stream([...request.messages], given)) {
      const chunk = toChunk(part);
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

/** A model that cannot stream gives one whole message. */
function toChunk(part: AIMessageChunk | AIMessage): AIMessageChunk {
  if (part instanceof AIMessageChunk) return part;
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

/** The chunk's id is kept: its tokens have been streamed under it. */
function answerOf(chunk: AIMessageChunk, { newId, random }: LangChainModelPorts): AIMessage {
  const providerCallIds: Record<string, string> = {};
  const calls = callsOf(chunk).map((call) => {
    const id = mintCallId(random);
    if (call.id !== undefined && call.id !== "") providerCallIds[id] = call.id;
    return { ...call, id };
  });
  chunk.tool_call_chunks = calls;
  chunk.response_metadata = { ...chunk.response_metadata, finish_reason: finishReason(chunk, calls.length > 0) };
  return toAnswer({ id: chunk.id || newId(), chunk, providerCallIds });
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
  if (error instanceof ModelFailure || !(error instanceof Error)) return error;
  const { status, code } = error as { status?: unknown; code?: unknown };
  return new ModelFailure("provider", error.message, {
    cause: error,
    ...(typeof status === "number" ? { status } : {}),
    ...(typeof code === "string" ? { code } : {}),
  });
}
