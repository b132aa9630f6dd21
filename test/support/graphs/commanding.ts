/** Goes where `Command` says: on to a node, and out of a subgraph into its parent's. */
import { Annotation, Command, END, START, StateGraph } from "@langchain/langgraph";

const State = Annotation.Root({
  route: Annotation<string>,
  trail: Annotation<string[]>({ reducer: (left, right) => [...left, ...right], default: () => [] }),
});

const leaving = new StateGraph(State)
  .addNode("leave", () => new Command({ graph: Command.PARENT, goto: "caught", update: { trail: ["left"] } }))
  .addEdge(START, "leave")
  .compile();

export const commanding = new StateGraph(State)
  .addNode("choose", ({ route }) => new Command({ goto: route, update: { trail: ["chose"] } }), {
    ends: ["short", "leaving"],
  })
  .addNode("short", () => ({ trail: ["short"] }))
  .addNode("leaving", leaving, { ends: ["caught"] })
  .addNode("caught", () => ({ trail: ["caught"] }))
  .addEdge(START, "choose")
  .addEdge("short", END)
  .addEdge("caught", END)
  .compile();
