/**
 * A `ChatModel` that plays a list of answers, for tests of what stands around a model.
 * It keeps the port's contract: message ids are given, tokens reach LangGraph's `messages` stream through callbacks, an
 * aborted signal ends the call. Past the end of its list it fails, so a test cannot take a turn it did not plan.
 */
import { CallbackManager } from "@langchain/core/callbacks/manager";
import { AIMessage, AIMessageChunk } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { ChatModel, ModelRequest } from "../../src/agent/models/model.ts";

export type PlannedAnswer =
  | AIMessage
  | ((request: ModelRequest, config: RunnableConfig) => AIMessage | Promise<AIMessage>);

export interface PlannedCall {
  readonly id: string;
  readonly name: string;
  readonly args?: Record<string, unknown>;
}

/** An answer with calls; `text` may be empty. */
export function callsAnswer(calls: readonly PlannedCall[], text = ""): AIMessage {
  const tool_calls = calls.map((call) => ({
    id: call.id,
    name: call.name,
    args: call.args ?? {},
    type: "tool_call" as const,
  }));
  return new AIMessage({ content: text, tool_calls });
}

export class FakeChatModel implements ChatModel {
  readonly name = "fake";
  readonly provider = "fake";
  /** Every request received, in order. */
  readonly requests: ModelRequest[] = [];
  readonly #answers: PlannedAnswer[];
  readonly #label: string;

  constructor(answers: readonly PlannedAnswer[], label = "fake") {
    this.#answers = [...answers];
    this.#label = label;
  }

  async generate(request: ModelRequest, config: RunnableConfig): Promise<AIMessage> {
    this.requests.push(request);
    config.signal?.throwIfAborted();
    const planned = this.#answers.shift();
    if (planned === undefined)
      throw new Error(`the fake model was asked for answer ${this.requests.length}, unplanned`);
    const answer = typeof planned === "function" ? await planned(request, config) : planned;
    answer.id ??= `${this.#label}-answer-${this.requests.length}`;
    answer.lc_kwargs["id"] = answer.id;
    await streamText(answer, request, config);
    return answer;
  }
}

async function streamText(answer: AIMessage, request: ModelRequest, config: RunnableConfig): Promise<void> {
  const manager = CallbackManager.configure(config.callbacks, undefined, config.tags, undefined, config.metadata);
  const serialized = { lc: 1, type: "not_implemented", id: ["fake"] } as const;
  const runs = await manager?.handleChatModelStart({ ...serialized, id: [...serialized.id] }, [[...request.messages]]);
  for (const word of answer.text.split(/(?<= )/)) {
    const message = new AIMessageChunk({ content: word, ...(answer.id === undefined ? {} : { id: answer.id }) });
    const chunk = new ChatGenerationChunk({ text: word, message });
    await runs?.[0]?.handleLLMNewToken(word, undefined, undefined, undefined, undefined, { chunk });
  }
  await runs?.[0]?.handleLLMEnd({ generations: [[{ text: answer.text, message: answer } as never]] });
}
