/**
 * The graphs that the peers bench runs on every server alike: a node that does nothing, an answer of 200 streamed tokens
 * (words, as in the `http` part), and a chain of five steps. Plain LangGraph: no tool, no model over a network.
 */
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { SimpleChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { Annotation, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";

const TOKENS = 200;
const STEPS = ["one", "two", "three", "four", "five"] as const;

const Count = Annotation.Root({ count: Annotation<number> });

export const noop = new StateGraph(Count)
  .addNode("nothing", () => ({}))
  .addEdge(START, "nothing")
  .addEdge("nothing", END)
  .compile();

export const chain = toChain();

class CountingModel extends SimpleChatModel {
  constructor() {
    super({});
  }

  override _llmType(): string {
    return "counting";
  }

  override async _call(): Promise<string> {
    return words().join("");
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    _options: unknown,
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for (const text of words()) {
      const chunk = new ChatGenerationChunk({ message: new AIMessageChunk({ content: text }), text });
      yield chunk;
      await runManager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

const model = new CountingModel();

export const tokens = new StateGraph(MessagesAnnotation)
  .addNode("answer", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addEdge(START, "answer")
  .addEdge("answer", END)
  .compile();

function words(): string[] {
  return Array.from({ length: TOKENS }, (_, index) => `word${index} `);
}

function toChain() {
  const [one, two, three, four, five] = STEPS;
  const add = ({ count }: typeof Count.State) => ({ count: count + 1 });
  return new StateGraph(Count)
    .addNode(one, add)
    .addNode(two, add)
    .addNode(three, add)
    .addNode(four, add)
    .addNode(five, add)
    .addEdge(START, one)
    .addEdge(one, two)
    .addEdge(two, three)
    .addEdge(three, four)
    .addEdge(four, five)
    .addEdge(five, END)
    .compile();
}
