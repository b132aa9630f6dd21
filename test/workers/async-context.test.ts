import "../../src/async-context.ts";
import { Annotation, Command, interrupt, MemorySaver, StateGraph } from "@langchain/langgraph";
import { env, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";

it("installs AsyncLocalStorage, so interrupt() inside a node suspends instead of failing", async () => {
  const State = Annotation.Root({ answer: Annotation<string> });
  const graph = new StateGraph(State)
    .addNode("ask", () => ({ answer: interrupt<string, string>("ready?") }))
    .addEdge("__start__", "ask")
    .compile({ checkpointer: new MemorySaver() });
  const config = { configurable: { thread_id: "t" } };
  const suspended = await graph.invoke({ answer: "" }, config);
  expect(suspended).toMatchObject({ __interrupt__: [{ value: "ready?" }] });
  const resumed = await graph.invoke(new Command({ resume: "yes" }), config);
  expect(resumed.answer).toBe("yes");
});

it("sql", async () => {
  const stub = env.THREADS.get(env.THREADS.idFromName("x"));
  await runInDurableObject(stub, (_i, state) => {
    expect(state.storage.sql.exec("select 1 as a").one()).toEqual({ a: 1 });
  });
});
