/** `RemoteGraph` of `@langchain/langgraph`: a graph of Deputy's as a graph of the caller's, alone and as a node of a local one. */
import { Annotation, Command, END, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import { RemoteGraph } from "@langchain/langgraph/remote";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DeputyServer, WITH_TEST_GRAPHS } from "../support/deputy-server.ts";
import { sdkClient } from "../support/sdk.ts";

const deputy = new DeputyServer({ config: WITH_TEST_GRAPHS });

beforeAll(() => deputy.start());
afterAll(() => deputy.close());

const remote = (graphId: string) => new RemoteGraph({ graphId, client: sdkClient(deputy.url) });
const newThread = async () => (await sdkClient(deputy.url).threads.create()).thread_id;
const on = (threadId: string) => ({ configurable: { thread_id: threadId } });

async function listOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

describe("RemoteGraph", () => {
  it("invokes without a thread and with one; the graph's failure is the caller's", async () => {
    const values = await remote("fan_out").invoke({ gate: "none", items: ["a", "b"] });
    expect(values).toMatchObject({ done: ["a", "b", "joined 2"] });
    const threadId = await newThread();
    await remote("counting").invoke({ count: 0, upTo: 3 }, on(threadId));
    expect((await remote("counting").getState(on(threadId))).values).toEqual({ count: 3, upTo: 3 });
    await expect(remote("failing").invoke({})).rejects.toThrow(/OutOfPaperError.*tray 2 is empty/);
    await expect(remote("counting").invoke({ count: 0, upTo: 9 }, { recursionLimit: 4 })).rejects.toThrow(
      "GraphRecursionError",
    );
  });

  it("streams by modes and from subgraphs, each named by where it stands", async () => {
    const input = { gate: "none", ask: false };
    const updates = await listOf(await remote("nested").stream(input, { streamMode: "updates" }));
    expect(updates.map((update) => Object.keys(update as object)[0])).toEqual(["before", "middle", "end"]);
    const modes = await listOf(
      await remote("nested").stream(input, { streamMode: ["values", "updates"], subgraphs: true }),
    );
    const seen = (modes as unknown as [string[], string, object][]).map(([namespace, mode, data]) => {
      const place = namespace.map((segment) => segment.replace(/:.*/, "")).join("|");
      return mode === "updates" ? `${place}>${Object.keys(data)[0]}` : "";
    });
    expect(seen.filter((name) => name !== "")).toEqual([
      ">before",
      "middle|inner>first",
      "middle|inner>second",
      "middle>inner",
      "middle>after",
      ">middle",
      ">end",
    ]);
  });

  it("reads its state and history, and writes at an older state", async () => {
    const [threadId, graph] = [await newThread(), remote("versioned")];
    await graph.invoke({ gate: "none" }, on(threadId));
    const history = await listOf(graph.getStateHistory(on(threadId)));
    expect(history.map(({ values }) => (values as { by: string[] }).by)).toEqual([["two", "two"], ["two"], [], []]);
    expect(history[0]!.parentConfig).toEqual(history[1]!.config);
    expect((await graph.getState(history[1]!.config)).values).toEqual(history[1]!.values);
    const before = await listOf(graph.getStateHistory(on(threadId), { before: history[1]!.config, limit: 1 }));
    expect(before.map(({ config }) => config)).toEqual([history[2]!.config]);
    const written = await graph.updateState(history[1]!.config, { by: ["me"] }, "first");
    const state = await graph.getState(on(threadId));
    expect(state).toMatchObject({ values: { by: ["two", "me"] }, next: ["second"] });
    expect(state.config.configurable?.["checkpoint_id"]).toBe(written.configurable?.["checkpoint_id"]);
  });

  it("is drawn, and names its subgraphs", async () => {
    const drawn = await remote("nested").getGraphAsync();
    expect(Object.keys(drawn.nodes)).toEqual(["__start__", "before", "middle", "end", "__end__"]);
    expect(drawn.edges.map(({ source, target }) => `${source}>${target}`)).toContain("before>middle");
    const subgraphs = await listOf(remote("nested").getSubgraphsAsync(undefined, true));
    expect(subgraphs.map(([namespace]) => namespace)).toEqual(["middle", "middle|inner"]);
  });

  it("asks and is answered: state shows the question, a Command brings the answer", async () => {
    const [threadId, graph] = [await newThread(), remote("nested")];
    const asking = listOf(await graph.stream({ gate: "none", ask: true }, on(threadId)));
    await expect(asking).rejects.toMatchObject({ interrupts: [{ value: { question: "go on?" } }] });
    const state = await graph.getState(on(threadId), { subgraphs: true });
    expect(state.next).toEqual(["middle"]);
    expect(state.tasks[0]!.interrupts).toMatchObject([{ value: { question: "go on?" } }]);
    expect(await graph.invoke(new Command({ resume: "yes" }), on(threadId))).toMatchObject({
      path: ["before", "end: yes!"],
    });
  });
});

describe("RemoteGraph as a node of a local graph", () => {
  const State = Annotation.Root({
    gate: Annotation<string>,
    ask: Annotation<boolean>,
    answer: Annotation<string>,
    path: Annotation<string[]>({ reducer: (_left, right) => right, default: () => [] }),
    after: Annotation<string>,
  });
  const local = () =>
    new StateGraph(State)
      .addNode("far", remote("nested"))
      .addNode("near", ({ answer }) => ({ after: `near: ${answer}` }))
      .addEdge(START, "far")
      .addEdge("far", "near")
      .addEdge("near", END);

  it("gives its values to the nodes behind it, and its frames to the local stream", async () => {
    const frames = await listOf(
      await local().compile().stream({ gate: "none", ask: false }, { streamMode: "updates", subgraphs: true }),
    );
    const seen = (frames as unknown as [string[], object][]).map(([namespace, data]) => {
      const place = namespace.map((segment) => segment.replace(/:.*/, "")).join("|");
      return `${place}>${Object.keys(data)[0]}`;
    });
    expect(seen).toEqual(expect.arrayContaining(["far>before", "far|middle|inner>second", ">far", ">near"]));
    expect(frames.at(-1)).toEqual([[], { near: { after: "near: not asked!" } }]);
  });

  it("stops the local graph with the remote one's question", async () => {
    const graph = local().compile({ checkpointer: new MemorySaver() });
    const threadId = await newThread();
    await graph.invoke({ gate: "none", ask: true }, on(threadId));
    const state = await graph.getState(on(threadId));
    expect(state.next).toEqual(["far"]);
    expect(state.tasks[0]!.interrupts).toMatchObject([{ value: { question: "go on?" } }]);
    // The remote thread has the same id, and its question.
    expect((await remote("nested").getState(on(threadId))).tasks[0]!.interrupts).toMatchObject([
      { value: { question: "go on?" } },
    ]);
  });
});
