/** R109 and the order of the chains (contracts, "Delegation"). */
import { describe, expect, test } from "vitest";
import type { AgentHook } from "../../../src/agent/hooks/hook.ts";
import type { LeadFixtureOptions } from "../../support/lead-fixture.ts";
import { leadFixture } from "../../support/lead-fixture.ts";
import { catalogOf, promptOf, ReplyModel, resultsIn, textAnswer } from "../../support/reply-model.ts";
import { taskCalls } from "../../support/delegation-fixture.ts";
import { HumanMessage } from "@langchain/core/messages";

const SHAPES: readonly (readonly [string, LeadFixtureOptions])[] = [
  ["as it comes", {}],
  ["delegation off", { configurable: { subagent_enabled: false } }],
  ["nobody to delegate to", { allowedSubagents: [] }],
  ["one call an answer", { configurable: { max_concurrent_subagents: 1 } }],
];

function modelWrappers(hooks: readonly AgentHook[]): string[] {
  return hooks.filter((hook) => hook.wrapModelCall !== undefined).map((hook) => hook.name);
}

describe("R109 the coalescer", () => {
  test.each(SHAPES)("is the innermost of the lead's model wrappers: %s", (_what, options) => {
    const { hooks } = leadFixture(options).descriptor.parts;
    expect(modelWrappers(hooks).at(-1)).toBe("system_coalescer");
    expect(modelWrappers(hooks).filter((name) => name === "system_coalescer")).toHaveLength(1);
  });

  test("so whatever the others add, a request of lead and child alike has one leading system message", async () => {
    const model = new ReplyModel((request) => {
      if (promptOf(request) !== "go") return textAnswer("found");
      return resultsIn(request).length === 0 ? taskCalls({ id: "a", prompt: "job" }) : textAnswer("done");
    });
    const { graph, config } = leadFixture({ models: catalogOf(model) });
    await graph.invoke({ messages: [new HumanMessage({ id: "h", content: "go" })] }, config);
    expect(model.requests).toHaveLength(3);
    for (const { messages } of model.requests) {
      expect(messages.map((message) => message.getType() === "system").lastIndexOf(true)).toBe(0);
    }
    // The ledger's authority contract was one more system message before it.
    expect(model.requests[2]?.messages[0]?.text).toContain("durable_context_data");
  });
});

test("the limit is behind the ledger in the chain, so it cuts before the ledger records", () => {
  const names = leadFixture().descriptor.hooks;
  expect(names.indexOf("subagent_limit")).toBeGreaterThan(names.indexOf("delegation_ledger"));
});
