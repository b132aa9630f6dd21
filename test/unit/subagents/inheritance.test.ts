import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { CallbackManager } from "@langchain/core/callbacks/manager";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { expect, test } from "vitest";
import { RESULT_CHARS_MAX } from "../../../src/domain/delegation/delegation-text.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import {
  delegatesOnce,
  delegationFixture,
  LEAD_PROMPT,
  runLead,
  taskResults,
} from "../../support/delegation-fixture.ts";
import { resultsIn, textAnswer } from "../../support/reply-model.ts";

class SeenHandler extends BaseCallbackHandler {
  override readonly name = "seen";
}

test("R130 a child runs under its task's identity, handlers and namespace, with its own tag and no coordinates of ours", async () => {
  const configs: RunnableConfig[] = [];
  const handler = new SeenHandler();
  const fixture = delegationFixture({
    lead: delegatesOnce({ id: "call_a", prompt: "count" }),
    child: (_request, config) => {
      configs.push(config);
      return textAnswer("42");
    },
  });
  const run = await runLead(fixture, { config: { tags: ["from-client"], callbacks: [handler] } });
  expect(run.error).toBeUndefined();
  const [config] = configs;
  expect(config?.tags?.filter((tag) => tag === "subagent:general-purpose")).toHaveLength(1);
  expect(config?.tags).toContain("from-client");
  // Its tokens are streamed, under its own namespace: a reader gets them by asking for subgraphs (R131).
  expect(config?.tags).not.toContain("nostream");
  expect(config?.configurable).toMatchObject({ thread_id: "thread-1", run_id: "run-1", deputy_task_id: "call_a" });
  const manager = config?.callbacks as CallbackManager;
  expect(manager.handlers.filter((each) => each === handler)).toHaveLength(1);
  const namespaces = String(config?.configurable?.["checkpoint_ns"]).split("|");
  expect(namespaces[0]).toMatch(/^tools:/);
  expect(namespaces[1]).toMatch(/^model:/);
});

test("R129 an interactive child's checkpoints stand in the parent's saver, under its task's namespace", async () => {
  const fixture = delegationFixture({
    lead: delegatesOnce({ id: "call_a", prompt: "count" }),
    child: () => textAnswer("42"),
  });
  await runLead(fixture);
  const namespaces = Object.keys(fixture.saver.storage["thread-1"] ?? {}).filter((each) => each !== "");
  expect(namespaces).toHaveLength(1);
  expect(namespaces[0]).toMatch(/^tools:[0-9a-f-]+$/);
});

test("with subgraphs streamed a child's frames stand under its own namespace, never the root's", async () => {
  const fixture = delegationFixture({
    tools: [plainTool("look", () => succeeded("CHILD-TOOL"))],
    lead: delegatesOnce({ id: "call_a", prompt: "count" }),
    child: (request) =>
      resultsIn(request).length === 0
        ? new AIMessage({ content: "", tool_calls: [{ id: "inner", name: "look", args: {}, type: "tool_call" }] })
        : textAnswer("CHILD-TEXT"),
  });
  const stream = await fixture.graph.stream(
    { messages: [new HumanMessage({ content: LEAD_PROMPT, id: "h1" })] },
    {
      configurable: { thread_id: "thread-1", run_id: "run-1" },
      streamMode: ["updates", "values", "messages"],
      subgraphs: true,
    },
  );
  const roots: unknown[] = [];
  const children: unknown[] = [];
  for await (const [namespace, mode, chunk] of stream as unknown as AsyncIterable<[string[], string, unknown]>) {
    if (namespace.length > 0) children.push(chunk);
    // The result of the task, and the answer made of it, are the lead's own.
    else if (mode !== "custom") roots.push(chunk);
  }
  expect(JSON.stringify(children)).toContain("CHILD-TOOL");
  expect(JSON.stringify(roots)).not.toContain("CHILD-TOOL");
});

test("P8 a result too long for a message is cut visibly and kept whole in the workspace, with the call", async () => {
  const whole = "é".repeat(RESULT_CHARS_MAX + 10);
  const fixture = delegationFixture({
    lead: delegatesOnce({ id: "call_a", prompt: "count" }),
    child: () => textAnswer(whole),
  });
  const { state } = await runLead(fixture);
  const [result] = taskResults(state);
  expect(result?.text).toContain("/workspace/outputs/call_a.txt");
  expect(Array.from(result?.text ?? "").length).toBeLessThanOrEqual(RESULT_CHARS_MAX + 30);
  const kept = fixture.services.workspace.open("call_a").read("/workspace/outputs/call_a.txt");
  expect(kept.ok && new TextDecoder().decode(kept.value)).toBe(whole);
});
