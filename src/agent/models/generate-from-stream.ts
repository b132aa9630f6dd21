/**
 * One streamed generation of a LangChain model, gathered into one answer. Streaming always: `invoke` on the OpenAI
 * adapter estimates missing usage with a tokenizer that it downloads, and stalls offline for over a minute.
 * Only the parts of the config that concern a model are passed on, so a run id or a timeout of the node is not reused.
 */
import type { BaseChatModel, BaseChatModelCallOptions } from "@langchain/core/language_models/chat_models";
import type { AIMessage, AIMessageChunk, BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { withUsageEstimate } from "./answer-usage.ts";
import { toAnswer } from "./model-answer.ts";
import { ModelFailure } from "./model.ts";
import { withPartialText } from "./partial-text.ts";

/** Call options of one request, and our call ids' provider ids as they arrive. */
export interface StreamExtras<Options> {
  readonly options?: Partial<Options>;
  readonly providerCallIds?: Readonly<Record<string, string>>;
  /** What really broke, when the model wraps it until the reason is gone. */
  readonly failure?: () => ModelFailure | undefined;
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
    throw withPartialText(extras.failure?.() ?? error, whole?.text ?? "");
  }
  config.signal?.throwIfAborted();
  if (!whole) throw new ModelFailure("truncated", "the answer ended before it began");
  const answer = toAnswer({ id: whole.id ?? "", chunk: whole, providerCallIds: extras.providerCallIds ?? {} });
  return withUsageEstimate(answer, messages);
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
