/** A two-node graph of the lead's form, with messages in a delta channel and six parallel tool calls per turn. */
import "../../src/async-context.ts";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import {
  Annotation,
  type BaseCheckpointSaver,
  DeltaChannel,
  messagesDeltaReducer,
  Send,
  StateGraph,
} from "@langchain/langgraph";

export const PARALLEL_CALLS = 6;

const State = Annotation.Root({
  messages: () => new DeltaChannel<BaseMessage[], BaseMessage[]>(messagesDeltaReducer),
  title: Annotation<string>,
  turns: Annotation<number>,
});

interface Call {
  readonly id: string;
  readonly place: number;
}

/** `settle` decides in which order parallel calls finish. */
export function buildToolGraph(checkpointer: BaseCheckpointSaver, settle: (place: number) => Promise<void>) {
  return new StateGraph(State)
    .addNode("model", ({ messages, turns }) => {
      const answered = messages.at(-1)?.type === "tool";
      const calls = Array.from({ length: PARALLEL_CALLS }, (_, n) => ({ id: `call_${n}`, name: "t", args: {} }));
      return {
        messages: [new AIMessage({ content: answered ? "done" : "", tool_calls: answered ? [] : calls })],
        turns: (turns ?? 0) + 1,
      };
    })
    .addNode("tools", async ({ id, place }: Call) => {
      await settle(place);
      return { messages: [new ToolMessage({ content: `result ${place}`, tool_call_id: id })] };
    })
    .addEdge("__start__", "model")
    .addConditionalEdges(
      "model",
      ({ messages }) => {
        const calls = (messages.at(-1) as AIMessage).tool_calls ?? [];
        return calls.length === 0 ? "__end__" : calls.map(({ id }, place) => new Send("tools", { id, place }));
      },
      ["tools", "__end__"],
    )
    .addEdge("tools", "model")
    .compile({ checkpointer });
}

/** One model turn a run: the answer names how many messages it saw. */
export function buildAnswerGraph(checkpointer: BaseCheckpointSaver) {
  return new StateGraph(State)
    .addNode("model", ({ messages, title, turns }) => ({
      messages: [new AIMessage(`saw ${messages.length}`)],
      turns: (turns ?? 0) + 1,
      ...(title === undefined ? { title: `about ${messages[0]!.text}` } : {}),
    }))
    .addEdge("__start__", "model")
    .addEdge("model", "__end__")
    .compile({ checkpointer });
}

export function human(text: string): { messages: BaseMessage[] } {
  return { messages: [new HumanMessage(text)] };
}
