import { AIMessage } from "@langchain/core/messages";
import { Command, interrupt } from "@langchain/langgraph";
import { expect, test } from "vitest";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { delegatesOnce, delegationFixture, runLead, taskResults } from "../../support/delegation-fixture.ts";
import { resultsIn, textAnswer } from "../../support/reply-model.ts";

test("a child's interrupt reaches the run, frees its slot meanwhile, and the child goes on with the answer", async () => {
  const fixture = delegationFixture({
    tools: [plainTool("ask", () => succeeded(`told ${String(interrupt("which one?"))}`))],
    lead: delegatesOnce({ id: "call_a", prompt: "choose" }),
    child: (request) =>
      resultsIn(request).length === 0
        ? new AIMessage({ content: "", tool_calls: [{ id: "inner", name: "ask", args: {}, type: "tool_call" }] })
        : textAnswer(resultsIn(request)[0]?.text ?? ""),
  });
  const first = await runLead(fixture);
  expect(first.error).toBeUndefined();
  expect(taskResults(first.state)).toEqual([]);
  expect(first.events.map((event) => event.type)).toEqual(["task_started", "task_running"]);
  expect(fixture.admission.snapshot().running).toBe(0);
  const config = { configurable: { thread_id: "thread-1", run_id: "run-1" } };
  await fixture.graph.invoke(new Command({ resume: "the blue one" }), config);
  const { values } = await fixture.graph.getState(config);
  expect(taskResults(values as never)[0]?.text).toBe("Task Succeeded. Result: told the blue one");
});
