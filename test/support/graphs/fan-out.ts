/** One branch an item, by `Send`. A branch whose item starts with "ask" asks; one named in a gate waits there. */
import { Annotation, END, interrupt, Send, START, StateGraph } from "@langchain/langgraph";
import { passGate } from "./gates.ts";

const State = Annotation.Root({
  gate: Annotation<string>,
  items: Annotation<string[]>,
  done: Annotation<string[]>({ reducer: (left, right) => [...left, ...right], default: () => [] }),
});

interface Branch {
  readonly gate: string;
  readonly item: string;
}

export const fanOut = new StateGraph(State)
  .addNode("split", () => ({}))
  .addNode("work", async ({ gate, item }: Branch) => {
    await passGate(`${gate}/${item}`);
    const answer = item.startsWith("ask") ? `${item}=${String(interrupt({ item }))}` : item;
    return { done: [answer] };
  })
  .addNode("join", ({ done }) => ({ done: [`joined ${done.length}`] }))
  .addEdge(START, "split")
  .addConditionalEdges("split", ({ gate, items }) => items.map((item) => new Send("work", { gate, item })), ["work"])
  .addEdge("work", "join")
  .addEdge("join", END)
  .compile();
