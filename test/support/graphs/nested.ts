/** Three graphs in one another. The innermost one asks before its last node; every node passes a gate of the run's own. */
import { Annotation, END, interrupt, START, StateGraph } from "@langchain/langgraph";
import { passGate } from "./gates.ts";

const State = Annotation.Root({
  gate: Annotation<string>,
  ask: Annotation<boolean>,
  path: Annotation<string[]>({ reducer: (left, right) => [...left, ...right], default: () => [] }),
});
/** A subgraph that reads its parent's path would append it again: it has its own. */
const Inner = Annotation.Root({
  gate: Annotation<string>,
  ask: Annotation<boolean>,
  answer: Annotation<string>,
});

const innermost = new StateGraph(Inner)
  .addNode("first", async ({ gate }) => {
    await passGate(`${gate}/first`);
    return {};
  })
  .addNode("second", async ({ gate, ask }) => {
    await passGate(`${gate}/second`);
    return { answer: ask ? String(interrupt({ question: "go on?" })) : "not asked" };
  })
  .addEdge(START, "first")
  .addEdge("first", "second")
  .addEdge("second", END)
  .compile();

const middle = new StateGraph(Inner)
  .addNode("inner", innermost)
  .addNode("after", async ({ gate, answer }) => {
    await passGate(`${gate}/after`);
    return { answer: `${answer}!` };
  })
  .addEdge(START, "inner")
  .addEdge("inner", "after")
  .addEdge("after", END)
  .compile();

const Outer = Annotation.Root({ ...State.spec, answer: Annotation<string> });

export const nested = new StateGraph(Outer)
  .addNode("before", () => ({ path: ["before"] }))
  .addNode("middle", middle)
  .addNode("end", ({ answer }) => ({ path: [`end: ${answer}`] }))
  .addEdge(START, "before")
  .addEdge("before", "middle")
  .addEdge("middle", "end")
  .addEdge("end", END)
  .compile();
