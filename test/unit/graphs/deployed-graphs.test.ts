import { Annotation, MemorySaver, StateGraph } from "@langchain/langgraph";
import { expect, it } from "vitest";
import { deployedGraphs } from "../../../src/agent/deployed-graphs.ts";
import type { GraphBinding } from "../../../src/agent/graph-catalog.ts";
import { parseDeputyConfig } from "../../../src/config.ts";
import { leadFixture } from "../../support/lead-fixture.ts";

const State = Annotation.Root({
  count: Annotation<number>({ reducer: (left, right) => left + right, default: () => 0 }),
});

const counter = new StateGraph(State)
  .addNode("add", () => ({ count: 1 }))
  .addEdge("__start__", "add")
  .compile();

function catalogOf(graphs: Record<string, object>) {
  const config = parseDeputyConfig({ graphs });
  return deployedGraphs({ config, models: {} as never, tools: [], subagents: {} as never, random: () => 0 });
}

function bindingTo(saver: MemorySaver): GraphBinding {
  return { saver, services: { newId: () => crypto.randomUUID() } } as unknown as GraphBinding;
}

it("serves an operator's compiled graph by id, with each thread's own saver", async () => {
  const catalog = catalogOf({ counter });
  expect([catalog.has("counter"), catalog.has("lead_agent"), catalog.has("other")]).toEqual([true, true, false]);
  const [first, second] = [new MemorySaver(), new MemorySaver()];
  for (const [saver, runs] of [
    [first, 2],
    [second, 1],
  ] as const) {
    const { graph, configurable } = await catalog.build("counter", {}, bindingTo(saver));
    const config = { configurable: { ...configurable, thread_id: "t" } };
    for (let run = 0; run < runs; run += 1) {
      for await (const _ of await graph.stream({ count: 0 }, config)) void _;
    }
    expect((await graph.getState(config)).values).toEqual({ count: runs });
  }
});

it("calls a factory with the run's config, and respects the graph's own recursion limit", async () => {
  const seen: unknown[] = [];
  const catalog = catalogOf({ dynamic: (config: unknown) => (seen.push(config), counter) });
  const config = { configurable: { flavour: "plain" }, recursionLimit: 7 };
  const built = await catalog.build("dynamic", config, bindingTo(new MemorySaver()));
  expect(seen).toEqual([config]);
  expect(built.recursionLimit).toBe(7);
});

it("why a lead's tool policy failed is told to the operator's log", async () => {
  const { options, config } = leadFixture();
  const { deputy, models, tools, subagents, services, admission, journal, circuits } = options;
  const policy = () => {
    throw new Error("db down");
  };
  const told: unknown[] = [];
  const report = (what: string, details: unknown) => void told.push([what, details]);
  const catalog = deployedGraphs({ config: deputy, models, tools, subagents, random: () => 0, policy });
  await catalog.build("lead_agent", config, {
    saver: new MemorySaver(),
    services: { ...services, report },
    admission,
    journal,
    circuits,
    principal: { owner: "alice", role: "user" },
  });
  expect(told).toContainEqual(["tool policy failed", expect.objectContaining({ tool: "bash", why: "Error: db down" })]);
});
