import "../../src/async-context.ts";
import { AIMessage } from "@langchain/core/messages";
import { Command, interrupt } from "@langchain/langgraph";
import { expect, test } from "vitest";
import { z } from "zod";
import type { AgentHook } from "../../src/agent/hooks/hook.ts";
import { agentFixture, humanInput, plainTool, runConfig, storedState, succeeded } from "../support/agent-fixture.ts";
import { callsAnswer } from "../support/fake-chat-model.ts";

test("the agent graph runs in workerd on LangGraph's browser export: schema check, parallel order, interrupt and resume", async () => {
  const gate: AgentHook = {
    name: "approval",
    async wrapToolCall(request, next) {
      if (request.call.name === "deploy") interrupt({ question: "deploy?" });
      return next(request);
    },
  };
  const deploy = plainTool(
    "deploy",
    (args) => succeeded(`deployed ${String(args["to"])}`),
    z.object({ to: z.string() }),
  );
  const look = plainTool("look", () => succeeded("seen"), z.object({ path: z.string() }));
  const calls = [
    { id: "c1", name: "look", args: { path: 7 } },
    { id: "c2", name: "deploy", args: { to: "staging" } },
    { id: "c3", name: "look", args: { path: "/" } },
  ];
  const fixture = agentFixture([callsAnswer(calls), new AIMessage("done")], { tools: [deploy, look], hooks: [gate] });
  await fixture.graph.invoke(humanInput("go", "h1"), runConfig("run-1"));
  await fixture.graph.invoke(new Command({ resume: "yes" }), runConfig("run-2"));
  const texts = (await storedState(fixture)).messages.map((message) => message.text);
  expect(texts[2]).toContain("path: Invalid input: expected string, received number");
  expect([...texts.slice(0, 2), ...texts.slice(3)]).toEqual(["go", "", "deployed staging", "seen", "done"]);
  expect(fixture.model.requests).toHaveLength(2);
});
