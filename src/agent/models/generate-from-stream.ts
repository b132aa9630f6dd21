/**
 * One streamed generation of a LangChain model, gathered into one answer. Streaming always: `invoke` on the OpenAI
 * adapter estimates missing usage with a tokenizer that it downloads, and stalls offline for over a minute.
 * Only the parts of the config that concern a model are passed on, so a run id or a timeout of the node is not reused.
 */
import type { BaseChatModel, BaseChatModelCallOptions } from "@langchain/core/language_models/chat_models";
import type { AIMessage, AIMessageChunk, BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { estimateUsage, withUsageEstimate } from "./answer-usage.ts";
import { toAnswer } from "./model-answer.ts";
import { type BrokenAnswer, ModelFailure } from "./model.ts";
import { withPartialText } from "./partial-text.ts";

/** Call options of one request, and our call ids' provider ids as they arrive. */
export interface StreamExtras<Options> {
  readonly options?: Partial<Options>;
  readonly providerCallIds?: Readonly<Record<string, string>>;
  /** What really broke, when the model wraps it until the reason is gone. */
  readonly failure?: () => ModelFailure | undefined;
  /** Whether the stream had begun a call, which comes whole at its end. */
  readonly hasCalls?: () => boolean;
}

export async function generateFromStream<Options extends BaseChatModelCallOptions>(
  model: BaseChatModel<Options>,
  messages: BaseMessage[],
  config: RunnableConfig,
  extras: StreamExtras<Options> = {},
): Promise<AIMessage> {
  const options = { ...modelConfig(config), ...extras.options } as Partial<Options>;
  let whole: AIMessageChunk | undefined;
  try {
    for await (const chunk of await model.stream(messages, options)) whole = whole ? whole.concat(chunk) : chunk;
  } catch (error) {
    const hasCalls = extras.hasCalls?.() === true;
    throw withPartialText(extras.failure?.() ?? error, whole?.text ?? "", brokenAnswer(whole, messages, hasCalls));
  }
  config.signal?.throwIfAborted();
  if (!whole) throw new ModelFailure("truncated", "the answer ended before it began");
  const answer = toAnswer({ id: whole.id ?? "", chunk: whole, providerCallIds: extras.providerCallIds ?? {} });
  return withUsageEstimate(answer, messages);
}

/** `undefined` for a stream that had not begun. */
function brokenAnswer(
  whole: AIMessageChunk | undefined,
  request: readonly BaseMessage[],
  hasCalls: boolean,
): BrokenAnswer | undefined {
  if (whole === undefined && !hasCalls) return undefined;
  const text = whole?.text ?? "";
  return { messageId: whole?.id ?? "", text, hasCalls, usage: estimateUsage(request, text.length) };
}

function modelConfig(config: RunnableConfig): RunnableConfig {
  const { callbacks, tags, metadata, configurable, signal, runName } = config;
  return {
    ...(callbacks !== undefined && { callbacks }),
    ...(tags !== undefined && { tags }),
    ...(metadata !== undefined && { metadata }),
    ...(configurable !== undefined && { configurable }),
    ...(signal !== undefined && { signal }),
    ...(runName !== undefined && { runName }),
  };
}
