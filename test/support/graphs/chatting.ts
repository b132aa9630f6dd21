/** LangGraph's own messages channel; its nodes give their messages no ids. One of two branches asks. */
import { AIMessage } from "@langchain/core/messages";
import { Annotation, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { passGate } from "./gates.ts";

const State = Annotation.Root({ ...MessagesAnnotation.spec, gate: Annotation<string> });

export const chatting = new StateGraph(State)
  .addNode("greet", () => ({ messages: [new AIMessage("hello")] }))
  .addNode("answer", () => ({ messages: [new AIMessage("an answer"), { role: "assistant", content: "as a dict" }] }))
  .addNode("asking", async ({ gate }) => {
    await passGate(`${gate}/asking`);
    return { messages: [new AIMessage(`you said ${String(interrupt("well?"))}`)] };
  })
  .addEdge(START, "greet")
  .addEdge("greet", "answer")
  .addEdge("greet", "asking")
  .addEdge("answer", END)
  .addEdge("asking", END)
  .compile();
