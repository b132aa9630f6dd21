/** Graphs of one shape that say which one they are; a gate stands in front of the second node of those that wait. */
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { passGate } from "./gates.ts";

const State = Annotation.Root({
  gate: Annotation<string>,
  by: Annotation<string[]>({ reducer: (left, right) => [...left, ...right], default: () => [] }),
});

export function signing(name: string, { waits = false } = {}) {
  return new StateGraph(State)
    .addNode("first", () => ({ by: [name] }))
    .addNode("second", async ({ gate }) => {
      if (waits) await passGate(`${gate}/second`);
      return { by: [name] };
    })
    .addEdge(START, "first")
    .addEdge("first", "second")
    .addEdge("second", END)
    .compile();
}
