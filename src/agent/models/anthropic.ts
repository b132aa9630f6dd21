/**
 * Anthropic's Messages API, through `@langchain/anthropic`. Streams always, never retries (attempts.ts does). The adapter
 * is built per generation, so that its `fetch`, ids and failure belong to that one exchange. Credentials come from the
 * caller only. Runs in workerd and Node alike.
 */
import { ChatAnthropicMessages } from "@langchain/anthropic";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { AIMessageChunk, type AIMessage, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import type { RunnableConfig } from "@langchain/core/runnables";
import { ANTHROPIC_OUTPUT_TOKENS_DEFAULT } from "../../config.ts";
import { type ThinkingMode, toAnthropicConversation } from "./anthropic-messages.ts";
import { AnthropicStreamNormaliser } from "./anthropic-stream-normaliser.ts";
import { toRegularChunk } from "./anthropic-chunk.ts";
import { withBegunAnswer } from "./continued-text.ts";
import { generateFromStream } from "./generate-from-stream.ts";
import { type ChatModel, ModelFailure, type ModelRequest, type ToolSpec } from "./model.ts";
import {
  type EventWire,
  exchangeBehindGate,
  type ProviderExchange,
  type ProviderOptions,
} from "./provider-exchange.ts";

/** Always given, because the client library would otherwise read it from the process environment. */
export const DEFAULT_ANTHROPIC_BASE_URL = "https://api.anthropic.com";

/** Used when neither `ANTHROPIC_MODEL` nor the configuration names a model. */
export const DEFAULT_ANTHROPIC_MODEL = "claude-sonnet-5";

export interface AnthropicModelOptions extends ProviderOptions {
  readonly apiKey: string;
  readonly baseUrl?: string | undefined;
  readonly model?: string | undefined;
  readonly temperature?: number | undefined;
  readonly maxOutputTokens?: number | undefined;
  readonly thinking?: boolean;
  readonly vision?: boolean;
  /** Absent: the model decides how much it thinks (adaptive). */
  readonly thinkingBudgetTokens?: number | undefined;
  /** Of adaptive thinking. */
  readonly reasoningEffort?: string | undefined;
  /** It refuses to be told not to think. */
  readonly alwaysThinks?: boolean;
}

/** Throws, when the model's name and its options contradict each other: a configuration fault, found at start. */
export function createAnthropicModel(options: AnthropicModelOptions): ChatModel {
  const { name, thinking = false, vision = false } = options;
  checkParameters(options, thinking ? ["on", modeWhileOff(options)] : ["off"]);
  return {
    name,
    provider: "anthropic",
    thinking,
    vision,
    generate: (request, config) => generate(options, request, config),
  };
}

function checkParameters(options: AnthropicModelOptions, modes: readonly ThinkingMode[]): void {
  try {
    for (const mode of modes) createAdapter(options, mode).invocationParams();
  } catch (error) {
    throw new Error(`models: "${options.name}": ${(error as Error).message}`, { cause: error });
  }
}

function modeWhileOff({ alwaysThinks = false }: AnthropicModelOptions): ThinkingMode {
  return alwaysThinks ? "unsaid" : "off";
}

const ANTHROPIC_WIRE: EventWire = {
  toFrame: (event) => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`,
  end: "",
};

async function generate(
  options: AnthropicModelOptions,
  request: ModelRequest,
  config: RunnableConfig,
): Promise<AIMessage> {
  const model = modelIdOf(options);
  const thinks = options.thinking === true && request.thinking === true;
  const asked = thinks ? "on" : modeWhileOff(options);
  const normaliser = new AnthropicStreamNormaliser({ model, random: options.random, begun: request.begun?.text });
  return exchangeBehindGate(options, config, {
    normaliser,
    wire: ANTHROPIC_WIRE,
    generate: (exchange) => {
      const messages = withBegunAnswer(request.messages, request.begun);
      const conversation = toAnthropicConversation(messages, { model, thinking: asked });
      const { messageId } = request.begun ?? {};
      return generateFromStream(
        createAdapter(
          messageId === undefined ? options : { ...options, newId: () => messageId },
          conversation.thinking,
          exchange,
        ),
        conversation.messages,
        config,
        {
          options: toToolOptions(request.tools, conversation.calledTools),
          providerCallIds: normaliser.providerCallIds,
          failure: () => exchange.failure,
          hasCalls: () => normaliser.hasCalls,
        },
      );
    },
  });
}

function modelIdOf({ model }: AnthropicModelOptions): string {
  return model || DEFAULT_ANTHROPIC_MODEL;
}

/** Calls in the history need their tools declared, also when none may be called any more. */
function toToolOptions(tools: readonly ToolSpec[], called: readonly string[]) {
  if (tools.length > 0) return { tools: tools.map(toAnthropicTool) };
  const past = called.map((name) => ({ name, input_schema: { type: "object" as const } }));
  return past.length === 0 ? {} : { tools: past, tool_choice: "none" };
}

const REFUSED_AT_TOP = ["oneOf", "anyOf", "allOf"] as const;

/** The adapter would leave such a tool out without a word, and the API refuse it. */
function toAnthropicTool({ name, description, parameters }: ToolSpec) {
  const refused = REFUSED_AT_TOP.find((key) => key in parameters);
  if (refused !== undefined) {
    const message = `tool '${name}': Anthropic takes no ${refused} at the top of a schema`;
    throw new ModelFailure("provider", message, { status: 400 });
  }
  return { name, description, input_schema: { ...parameters, type: "object" as const } };
}

/** Without an exchange it only checks its parameters. Models that think take no temperature. */
function createAdapter(
  options: AnthropicModelOptions,
  mode: ThinkingMode,
  exchange?: ProviderExchange,
): RegularAdapter {
  const { thinkingBudgetTokens, reasoningEffort, temperature, maxOutputTokens } = options;
  const isAdaptive = mode === "on" && thinkingBudgetTokens === undefined;
  return new RegularAdapter(options.newId, {
    model: modelIdOf(options),
    apiKey: options.apiKey,
    anthropicApiUrl: options.baseUrl || DEFAULT_ANTHROPIC_BASE_URL,
    maxTokens: maxOutputTokens ?? ANTHROPIC_OUTPUT_TOKENS_DEFAULT,
    maxRetries: 0,
    streaming: true,
    streamUsage: false,
    ...(mode === "off" && { thinking: { type: "disabled" } }),
    ...(isAdaptive && { thinking: { type: "adaptive" } }),
    ...(isAdaptive && reasoningEffort !== undefined && { outputConfig: { effort: reasoningEffort as never } }),
    ...(mode === "on" &&
      !isAdaptive && { thinking: { type: "enabled", budget_tokens: thinkingBudgetTokens as number } }),
    ...(mode === "off" && temperature !== undefined && { temperature }),
    // What is left out here, the client looks for in the process environment.
    clientOptions: { fetch: exchange?.fetch, authToken: null, webhookKey: null, logLevel: "off" },
  });
}

type AdapterFields = NonNullable<ConstructorParameters<typeof ChatAnthropicMessages>[0]>;

/** Its chunks as those of every other provider, under one id of ours. */
class RegularAdapter extends ChatAnthropicMessages {
  readonly #id: string;

  constructor(newId: () => string, fields: Exclude<AdapterFields, string>) {
    super(fields);
    this.#id = newId();
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    // Without the run manager, which is told of the regular chunks alone.
    for await (const { message } of super._streamResponseChunks(messages, options)) {
      if (!AIMessageChunk.isInstance(message)) continue;
      const regular = toRegularChunk(message, this.#id);
      const chunk = new ChatGenerationChunk({ message: regular, text: regular.text });
      yield chunk;
      await runManager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}
