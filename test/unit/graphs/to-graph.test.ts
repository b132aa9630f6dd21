import { MemorySaver } from "@langchain/langgraph";
import { expect, it } from "vitest";
import { deployedGraphs } from "../../../src/agent/deployed-graphs.ts";
import type { GraphBinding } from "../../../src/agent/graph-catalog.ts";
import { assembleLeadAgent } from "../../../src/agent/lead/assemble-lead-agent.ts";
import { toGraph } from "../../../src/agent/to-graph.ts";
import { parseDeputyConfig } from "../../../src/config.ts";

const agent = assembleLeadAgent({});
const services = { newId: () => crypto.randomUUID() };
const binding = { saver: new MemorySaver(), services } as unknown as GraphBinding;

it("R165 a bare graph is itself, an agent is its graph, and the inner one wins", () => {
  expect(toGraph(agent.graph)).toBe(agent.graph);
  expect(toGraph(agent)).toBe(agent.graph);
  const wrapper = { graph: agent.graph, stream: () => {}, getState: () => {} };
  expect(toGraph(wrapper)).toBe(agent.graph);
});

it("R165 what is no graph is refused by what it is", () => {
  const wrong = (value: unknown) => () => toGraph(value as never);
  expect(wrong({ graph: {} })).toThrow("not a graph: an object with graph; give a compiled LangGraph graph");
  expect(wrong(null)).toThrow("not a graph: null");
  expect(wrong(function build() {})).toThrow("not a graph: the function 'build'");
  expect(wrong({})).toThrow("not a graph: an object with no properties");
});

it.each([
  ["a graph", agent.graph],
  ["an agent", agent],
  ["a factory of a graph", () => agent.graph],
  ["a factory of an agent", async () => agent],
])("R165 the deployment's catalogue serves %s", async (_what, entry) => {
  const config = parseDeputyConfig({ graphs: { mine: entry } });
  const catalog = deployedGraphs({ config, models: {} as never, tools: [], subagents: {} as never, random: () => 0 });
  expect((await catalog.build("mine", {}, binding)).graph).toBe(agent.graph);
});
