import { expect, test } from "vitest";
import { AIMessage } from "@langchain/core/messages";
import type { AgentHook } from "../../../src/agent/hooks/hook.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import {
  delegatesOnce,
  delegationFixture,
  eventTypes,
  runLead,
  taskResults,
} from "../../support/delegation-fixture.ts";
import { resultsIn, textAnswer, withUsage } from "../../support/reply-model.ts";

function lookCall(id: string): AIMessage {
  return withUsage(new AIMessage({ content: "", tool_calls: [{ id, name: "look", args: {}, type: "tool_call" }] }), {
    input: 10,
    output: 1,
  });
}

test("P2 R129 a parent that died mid-child resumes the child from its last step: finished calls are not repeated", async () => {
  let crash = true;
  const looked: string[] = [];
  const crashed = new AbortController();
  const fixture = delegationFixture({
    tools: [plainTool("look", (_args, runtime) => (looked.push(runtime.toolCallId), succeeded("seen")))],
    lead: delegatesOnce({ id: "call_a", prompt: "count" }),
    child: async (request, config) => {
      const done = resultsIn(request).length;
      if (done < 2) return lookCall(`inner-${done}`);
      if (!crash) return textAnswer("two seen", { input: 10, output: 1 });
      queueMicrotask(() => crashed.abort());
      await new Promise((_, reject) => config.signal?.addEventListener("abort", () => reject(new Error("died"))));
      return textAnswer("never");
    },
  });
  const first = await runLead(fixture, { signal: crashed.signal });
  expect(first.error).toBeDefined();
  expect(taskResults(first.state)).toEqual([]);
  expect(looked).toEqual(["inner-0", "inner-1"]);
  crash = false;
  const second = await runLead(fixture, { input: null });
  expect(second.error).toBeUndefined();
  expect(looked).toEqual(["inner-0", "inner-1"]);
  expect(taskResults(second.state)[0]?.text).toBe("Task Succeeded. Result: two seen");
  expect(eventTypes(second.events)).toEqual(["task_running", "task_completed"]);
  expect(second.events[0]).toMatchObject({ message_index: 5, total_messages: 5 });
  expect(second.events[1]).toMatchObject({ usage: { total_tokens: 33 } });
});

test("P2 a child that had finished, but whose result had not committed, is not asked again", async () => {
  const crashed = new AbortController();
  let childTurns = 0;
  const dieBeforeCommit: AgentHook = {
    name: "die_before_commit",
    async wrapToolCall(request, next) {
      const result = await next(request);
      if (crashed.signal.aborted) return result;
      crashed.abort();
      throw new Error("died before the result committed");
    },
  };
  const fixture = delegationFixture({
    hooks: [dieBeforeCommit],
    lead: delegatesOnce({ id: "call_a", prompt: "count" }),
    child: () => textAnswer(`answer ${(childTurns += 1)}`, { input: 1, output: 1 }),
  });
  const first = await runLead(fixture, { signal: crashed.signal });
  expect(first.error).toBeDefined();
  expect(taskResults(first.state)).toEqual([]);
  const second = await runLead(fixture, { input: null });
  expect(childTurns).toBe(1);
  expect(taskResults(second.state).map((result) => result.text)).toEqual(["Task Succeeded. Result: answer 1"]);
  expect(second.events).toMatchObject([{ type: "task_completed", usage: { total_tokens: 2 } }]);
  expect(fixture.admission.snapshot().running).toBe(0);
});

test("a delegation cancelled by request before a crash stays cancelled when the run is recovered", async () => {
  const crashed = new AbortController();
  let recovered = false;
  const fixture = delegationFixture({
    lead: delegatesOnce({ id: "call_a", prompt: "count" }),
    child: async (_request, config) => {
      if (recovered) return textAnswer("must not run");
      queueMicrotask(() => crashed.abort());
      await new Promise((_, reject) => config.signal?.addEventListener("abort", () => reject(new Error("died"))));
      return textAnswer("never");
    },
  });
  await runLead(fixture, { signal: crashed.signal });
  fixture.journal.cancel("call_a");
  recovered = true;
  const asked = fixture.model.requests.length;
  const { state, events } = await runLead(fixture, { input: null });
  expect(taskResults(state)[0]?.additional_kwargs).toMatchObject({ subagent_status: "cancelled" });
  expect(eventTypes(events)).toEqual(["task_cancelled"]);
  expect(fixture.model.requests.length).toBe(asked + 1);
});
