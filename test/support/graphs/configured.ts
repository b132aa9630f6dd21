/** Graphs that look at how they are run: a factory by its config, a context schema, own limits, own savers. */
import { Annotation, END, type LangGraphRunnableConfig, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import { z } from "zod";

const State = Annotation.Root({ said: Annotation<string>, count: Annotation<number> });

const saying = (say: (config: LangGraphRunnableConfig) => string) =>
  new StateGraph(State)
    .addNode("say", (_state, config: LangGraphRunnableConfig) => ({ said: say(config) }))
    .addEdge(START, "say")
    .addEdge("say", END);

export class FlavourError extends Error {
  override readonly name = "FlavourError";
}

/** Another graph for each flavour; without one there is none. */
export async function dynamic(
  { configurable = {} }: LangGraphRunnableConfig,
  { accessContext, executionRuntime }: { accessContext: string; executionRuntime: { context?: unknown } | null },
) {
  const { flavour } = configurable as { flavour?: string };
  if (flavour === undefined) throw new FlavourError("a flavour is required");
  const context = JSON.stringify(executionRuntime?.context ?? null);
  return saying(() => `${flavour} for ${accessContext} with ${context}`).compile();
}

const Context = z.object({ user_id: z.string(), level: z.number().int().optional() });

export const contextual = new StateGraph({
  state: z.object({ said: z.string().optional(), topic: z.string().optional() }),
  input: z.object({ topic: z.string() }),
  output: z.object({ said: z.string() }),
  context: Context,
})
  .addNode("say", (_state, runtime) => ({ said: `for ${runtime.context?.user_id}` }))
  .addEdge(START, "say")
  .addEdge("say", END)
  .compile();

/** Counts up to `upTo`; compiled to stop after 7 steps. */
const Counting = Annotation.Root({ count: Annotation<number>, upTo: Annotation<number> });
export const counting = new StateGraph(Counting)
  .addNode("add", ({ count }) => ({ count: (count ?? 0) + 1 }))
  .addEdge(START, "add")
  .addConditionalEdges("add", ({ count, upTo }) => (count < upTo ? "add" : END), ["add", END])
  .compile()
  .withConfig({ recursionLimit: 7 });

/** Its own saver would be shared by every thread of the isolate, and lost with it. */
export const ownSaver = saying(({ configurable }) => `thread ${String(configurable?.["thread_id"])}`).compile({
  checkpointer: new MemorySaver(),
});
export const noSaver = saying(() => "kept all the same").compile({ checkpointer: false });

/** Which headers of the request reached the graph. */
export const forwarded = saying(({ configurable = {} }) =>
  Object.entries(configurable)
    .filter(([name]) => name.startsWith("x-"))
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(),
).compile();

export class OutOfPaperError extends Error {
  override readonly name = "OutOfPaperError";
}

export const failing = new StateGraph(State)
  .addNode("fill", () => ({ said: "before" }))
  .addNode("fail", (): never => {
    throw new OutOfPaperError("tray 2 is empty");
  })
  .addEdge(START, "fill")
  .addEdge("fill", "fail")
  .compile();
