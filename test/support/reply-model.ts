/**
 * A `ChatModel` that answers by a function of the request, for tests with several agents at once: a plan by order cannot
 * tell parallel children apart. Every request must pass `assertModelRequest`; an aborted signal ends a call that waits.
 */
import { AIMessage, type BaseMessage, isHumanMessage, isToolMessage, type ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { assertModelRequest } from "../../src/agent/models/assert-model-request.ts";
import type { ChatModel, ModelCatalog, ModelRequest } from "../../src/agent/models/model.ts";

export type Reply = (request: ModelRequest, config: RunnableConfig) => AIMessage | Promise<AIMessage>;

export class ReplyModel implements ChatModel {
  readonly provider = "test";
  readonly name: string;
  readonly requests: ModelRequest[] = [];
  readonly #reply: Reply;
  #answers = 0;

  constructor(reply: Reply, name = "reply") {
    this.#reply = reply;
    this.name = name;
  }

  async generate(request: ModelRequest, config: RunnableConfig): Promise<AIMessage> {
    assertModelRequest(request);
    config.signal?.throwIfAborted();
    this.requests.push(request);
    const answer = await untilAborted(Promise.resolve(this.#reply(request, config)), config.signal);
    this.#answers += 1;
    answer.id = `${this.name}-${this.#answers}`;
    answer.lc_kwargs["id"] = answer.id;
    return answer;
  }
}

async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

export function catalogOf(...models: readonly ChatModel[]): ModelCatalog {
  const [first] = models;
  if (first === undefined) throw new Error("a catalogue needs a model");
  return {
    defaultName: first.name,
    find: (name = "inherit") => (name === "inherit" ? first : models.find((model) => model.name === name)),
    names: () => models.map((model) => model.name),
  };
}

/** The text of the request's first visible Human message: a child's task prompt. */
export function promptOf(request: ModelRequest): string {
  const isPrompt = (message: BaseMessage) =>
    isHumanMessage(message) && message.additional_kwargs["hide_from_ui"] !== true;
  return request.messages.find(isPrompt)?.text ?? "";
}

export function resultsIn(request: ModelRequest): readonly ToolMessage[] {
  return request.messages.filter((message): message is ToolMessage => isToolMessage(message));
}

export interface Tokens {
  readonly input: number;
  readonly output: number;
}

export function textAnswer(text: string, tokens?: Tokens): AIMessage {
  return withUsage(new AIMessage({ content: text }), tokens);
}

export function withUsage(answer: AIMessage, tokens: Tokens | undefined): AIMessage {
  if (tokens === undefined) return answer;
  const { input, output } = tokens;
  const usage = { input_tokens: input, output_tokens: output, total_tokens: input + output };
  // The library types `usage_metadata` as never for a message without declared tools.
  // And serialises from the constructor's arguments.
  answer.lc_kwargs["usage_metadata"] = usage;
  return Object.assign(answer, { usage_metadata: usage });
}
