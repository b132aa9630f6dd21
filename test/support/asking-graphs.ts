/** Graphs that ask, for threads whose object dies in between. What they did is written down outside of the object. */
import { Annotation, END, interrupt, Send, START, StateGraph } from "@langchain/langgraph";

export const AskState = Annotation.Root({
  log: Annotation<string[]>({ reducer: (before, added) => [...before, ...added], default: () => [] }),
});

/** Where a test stops a graph, and what ran so far. A further wake over the same storage has gates of its own. */
export class GraphGates {
  readonly ran: string[] = [];
  readonly #stopped = new Set<string>();

  constructor(...stopAt: string[]) {
    for (const place of stopAt) this.#stopped.add(place);
  }

  /** Never returns at a place that is stopped at: the object dies there. */
  async pass(place: string): Promise<void> {
    this.ran.push(place);
    if (this.#stopped.has(place)) await new Promise(() => undefined);
  }
}

/** One node that asks twice, between two that do not. */
export function askTwice(gates: GraphGates) {
  return new StateGraph(AskState)
    .addNode("before", async () => ({ log: ["before"] }))
    .addNode("ask", async () => {
      const first: unknown = interrupt("first?");
      await gates.pass("answered first");
      const second: unknown = interrupt("second?");
      await gates.pass("answered second");
      return { log: [`${String(first)} then ${String(second)}`] };
    })
    .addNode("after", async () => {
      await gates.pass("after");
      return { log: ["after"] };
    })
    .addEdge(START, "before")
    .addEdge("before", "ask")
    .addEdge("ask", "after")
    .addEdge("after", END)
    .compile();
}

/** The same question node as a graph inside of a node, which goes on after it. */
export function askInChild(gates: GraphGates) {
  const child = new StateGraph(AskState)
    .addNode("question", async () => {
      const first: unknown = interrupt("first?");
      await gates.pass("child answered first");
      const second: unknown = interrupt("second?");
      return { log: [`${String(first)} then ${String(second)}`] };
    })
    .addEdge(START, "question")
    .addEdge("question", END)
    .compile();
  return new StateGraph(AskState)
    .addNode("nested", child)
    .addNode("after", async () => ({ log: ["after"] }))
    .addEdge(START, "nested")
    .addEdge("nested", "after")
    .addEdge("after", END)
    .compile();
}

/** Two tasks of one step, each with its own question. */
export function askBoth(gates: GraphGates) {
  return new StateGraph(AskState)
    .addNode("ask", async ({ name }: { name: string }) => {
      const answer: unknown = interrupt(`${name}?`);
      await gates.pass(`${name} answered`);
      return { log: [`${name}=${String(answer)}`] };
    })
    .addNode("after", async () => ({ log: ["after"] }))
    .addConditionalEdges(START, () => ["a", "b"].map((name) => new Send("ask", { name })), ["ask"])
    .addEdge("ask", "after")
    .addEdge("after", END)
    .compile();
}

/** Three plain steps, to be stopped at. */
export function steps(gates: GraphGates) {
  const step = (name: string) => async () => {
    await gates.pass(name);
    return { log: [name] };
  };
  return new StateGraph(AskState)
    .addNode("one", step("one"))
    .addNode("two", step("two"))
    .addNode("three", step("three"))
    .addEdge(START, "one")
    .addEdge("one", "two")
    .addEdge("two", "three")
    .addEdge("three", END)
    .compile();
}
