/**
 * `scripted`, the embedded default model: deterministic, offline, and honest. It runs the script in the prompt
 * (docs/scripted-model.md) and otherwise quotes the prompt; it never has an answer of its own.
 * Owns turning a scripted answer into a token stream with LangChain's callbacks, usage and failures; what is said is
 * decided by `script-answer.ts`.
 */
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel, type BaseChatModelCallOptions } from "@langchain/core/language_models/chat_models";
import {
  AIMessageChunk,
  type AIMessageChunkFields,
  type BaseMessage,
  type UsageMetadata,
} from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { assertModelRequest, roleOf } from "./assert-model-request.ts";
import { AttemptCounter } from "./attempt-counter.ts";
import { mintCallId } from "./call-id.ts";
import { generateFromStream } from "./generate-from-stream.ts";
import { type ChatModel, ModelFailure } from "./model.ts";
import {
  answerFromScript,
  type ConversationMessage,
  countWords,
  firstHalf,
  type ScriptedAnswer,
  toTokens,
} from "./script-answer.ts";
import { type Sleep, sleepFor } from "./sleep.ts";

export const SCRIPTED_MODEL_NAME = "scripted";

export interface ScriptedModelOptions {
  readonly name?: string;
  readonly newId: () => string;
  readonly random: () => number;
  /** How long a `fail stall` turn is silent before it fails as idle. */
  readonly modelIdleMs: number;
  readonly sleep?: Sleep;
}

export function createScriptedModel(options: ScriptedModelOptions): ChatModel {
  const model = new ScriptedChatModel(options);
  return {
    name: options.name ?? SCRIPTED_MODEL_NAME,
    provider: "scripted",
    async generate(request, config) {
      assertModelRequest(request);
      return generateFromStream(model, [...request.messages], config);
    },
  };
}

/** LangChain sees a streaming chat model, so tokens reach LangGraph's `messages` stream by its own callbacks. */
class ScriptedChatModel extends BaseChatModel {
  readonly #options: ScriptedModelOptions;
  readonly #name: string;
  readonly #sleep: Sleep;
  readonly #attempts = new AttemptCounter();

  constructor(options: ScriptedModelOptions) {
    super({});
    this.#options = options;
    this.#name = options.name ?? SCRIPTED_MODEL_NAME;
    this.#sleep = options.sleep ?? sleepFor;
  }

  override _llmType(): string {
    return "scripted";
  }

  override async _generate(
    messages: BaseMessage[],
    options: BaseChatModelCallOptions,
    runManager?: CallbackManagerForLLMRun,
  ): Promise<ChatResult> {
    let whole: ChatGenerationChunk | undefined;
    for await (const chunk of this._streamResponseChunks(messages, options, runManager)) {
      whole = whole ? whole.concat(chunk) : chunk;
    }
    return { generations: whole ? [whole] : [] };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: BaseChatModelCallOptions,
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const answer = answerFromScript(messages.map(toConversation));
    const failure = answer.failure && this.#attempts.next(answer.turnKey) <= answer.failure.times;
    const chunks = failure ? this.#failing(answer, options.signal) : this.#whole(answer, messages);
    const id = this.#options.newId();
    for await (const fields of chunks) {
      options.signal?.throwIfAborted();
      const message = new AIMessageChunk({ ...fields, id } as AIMessageChunkFields);
      const chunk = new ChatGenerationChunk({ message, text: message.text });
      yield chunk;
      await runManager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
      if (answer.delayMs > 0) await this.#sleep(answer.delayMs, options.signal);
    }
  }

  *#whole(answer: ScriptedAnswer, messages: readonly BaseMessage[]): Generator<ChunkFields> {
    for (const token of toTokens(answer.text)) yield { content: token };
    for (const [index, call] of answer.calls.entries()) yield this.#toCallChunk(index, call);
    const finish_reason = answer.calls.length > 0 ? "tool_calls" : "stop";
    const response_metadata = { finish_reason, model_name: this.#name };
    const usage = usageOf(answer, messages);
    yield { content: "", response_metadata, ...(usage && { usage_metadata: usage }) };
  }

  #toCallChunk(index: number, call: ScriptedAnswer["calls"][number]): ChunkFields {
    const id = mintCallId(this.#options.random);
    const { name, rawArguments: args } = call;
    return { content: "", tool_call_chunks: [{ type: "tool_call_chunk", index, id, name, args }] };
  }

  /** The failure a script asked for, as the same failure of a real provider would surface. */
  async *#failing(answer: ScriptedAnswer, signal: AbortSignal | undefined): AsyncGenerator<ChunkFields> {
    const failure = answer.failure;
    if (!failure) return;
    if (failure.kind === "status") throw statusFailure(failure.status, failure.retryAfterSeconds);
    if (failure.kind !== "empty") for (const token of firstHalf(toTokens(answer.text))) yield { content: token };
    if (failure.kind === "cut") throw new ModelFailure("truncated", "the script asked for a stream without an end");
    if (failure.kind === "error") throw new ModelFailure("stream_error", "the script asked for an error in the stream");
    if (failure.kind === "stall") await this.#stall(signal);
    const cut = failure.kind === "length";
    if (cut) yield* this.#cutCalls(answer);
    yield { content: "", response_metadata: { finish_reason: cut ? "length" : "stop", model_name: this.#name } };
  }

  async #stall(signal: AbortSignal | undefined): Promise<never> {
    await this.#sleep(this.#options.modelIdleMs, signal);
    throw new ModelFailure("idle", `the scripted model was silent for ${this.#options.modelIdleMs} ms`);
  }

  *#cutCalls(answer: ScriptedAnswer): Generator<ChunkFields> {
    for (const [index, call] of answer.calls.entries()) {
      const cut = call.rawArguments.slice(0, Math.ceil(call.rawArguments.length / 2));
      yield this.#toCallChunk(index, { ...call, rawArguments: cut });
    }
  }
}

interface ChunkFields {
  readonly content: string;
  readonly tool_call_chunks?: AIMessageChunk["tool_call_chunks"];
  readonly response_metadata?: Readonly<Record<string, string>>;
  readonly usage_metadata?: UsageMetadata;
}

function statusFailure(status: number, retryAfterSeconds: number | undefined): ModelFailure {
  const wait = retryAfterSeconds === undefined ? {} : { retryAfterMs: retryAfterSeconds * 1_000 };
  return new ModelFailure("provider", `the script asked for status ${status}`, { status, ...wait });
}

/** Human messages of the framework that carry no `hide_from_ui` (other programs expect them so). */
const FRAMEWORK_NAMES: ReadonlySet<string> = new Set(["loop_warning", "budget_warning", "progress_hint", "summary"]);

function toConversation(message: BaseMessage): ConversationMessage {
  return {
    role: roleOf(message),
    text: message.text,
    id: message.id,
    hidden: message.additional_kwargs.hide_from_ui === true || FRAMEWORK_NAMES.has(message.name ?? ""),
  };
}

function usageOf(answer: ScriptedAnswer, messages: readonly BaseMessage[]): UsageMetadata | undefined {
  if (answer.usage === "none") return undefined;
  const counted = answer.usage === "counted";
  const input = counted ? messages.reduce((sum, message) => sum + countWords(message.text), 0) : answer.usage.input;
  const spoken = [answer.text, ...answer.calls.map((call) => call.rawArguments)];
  const output = counted ? spoken.reduce((sum, text) => sum + countWords(text), 0) : answer.usage.output;
  return { input_tokens: input, output_tokens: output, total_tokens: input + output };
}
