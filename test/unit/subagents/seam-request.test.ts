import { AIMessage, isHumanMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { spawnProvider } from "../../../src/agent/subagents/providers/spawn.ts";
import type { SubagentRequest } from "../../../src/agent/subagents/provider.ts";
import { agentFixture, humanInput, plainTool, runConfig, succeeded, toolResults } from "../../support/agent-fixture.ts";
import { plannedChild } from "../../support/child-plan.ts";
import { callsAnswer } from "../../support/fake-chat-model.ts";
import { ReplyModel, resultsIn, textAnswer } from "../../support/reply-model.ts";

test("R142 the prompt is the child's one Human message, verbatim, as a string or in blocks", async () => {
  const blocks = [
    { type: "text", text: "  first\n" },
    { type: "text", text: "<second>" },
  ] as const;
  for (const prompt of ["  keep my\n<spaces> ", blocks] as const) {
    const { request, asked } = plannedChild([{ says: "42" }], { prompt });
    const run = await spawnProvider().start(request);
    await run.result;
    await run.dispose();
    const humans = asked[0]?.messages.filter(isHumanMessage) ?? [];
    expect(humans.map(({ content }) => content)).toEqual([prompt]);
  }
});

test("R143 a child works in its parent's workspace, thread and run, one level deeper, under its own label", async () => {
  const seen: Record<string, unknown>[] = [];
  const look = plainTool("look", (_args, { workspace, config }) => {
    const file = workspace.read("/workspace/notes.txt");
    seen.push({ ...config.configurable, file: file.ok && new TextDecoder().decode(file.value) });
    return succeeded("seen");
  });
  const labels: unknown[] = [];
  const model = new ReplyModel((request, config) => {
    labels.push(config.metadata?.["subagent_label"]);
    return resultsIn(request).length === 0 ? callsAnswer([{ id: "inner", name: "look" }]) : textAnswer("42");
  });
  const agent = { name: "worker", systemPrompt: "", model, tools: [look], hooks: [], maxTurns: 5 };
  const write = plainTool("write", (_args, { workspace }) => {
    workspace.write("/workspace/notes.txt", new TextEncoder().encode("of the parent"));
    return succeeded("written");
  });
  const ask = plainTool("ask", async (_args, { config, signal }) => {
    const parent: SubagentRequest["parent"] = { name: "lead", depth: 1, config, services: fixture.services };
    const run = await spawnProvider().start({
      id: "task-1",
      prompt: "look",
      label: "look around",
      agent,
      parent,
      signal,
    });
    const { output } = await run.result;
    await run.dispose();
    return succeeded(output.map(({ text }) => text).join());
  });
  const plan = [
    callsAnswer([{ id: "a", name: "write" }]),
    callsAnswer([{ id: "b", name: "ask" }]),
    new AIMessage("done"),
  ];
  const fixture = agentFixture(plan, { tools: [write, ask], hooks: [committing(() => fixture.services)] });
  const state = await fixture.graph.invoke(humanInput("go", "h1"), runConfig());
  expect(toolResults(state as never).map(({ text }) => text)).toEqual(["written", "42"]);
  expect(seen).toEqual([
    expect.objectContaining({
      file: "of the parent",
      thread_id: "thread-1",
      run_id: "run-1",
      deputy_depth: 2,
      deputy_task_id: "task-1",
      checkpoint_ns: expect.stringMatching(/^tools:.+\|tools:/),
    }),
  ]);
  expect(labels).toEqual(["look around", "look around"]);
});

/** What a thread object does with a call's staged files once its result has committed. */
function committing(services: () => ReturnType<typeof agentFixture>["services"]) {
  return {
    name: "committing",
    beforeModel: () => {
      services().workspace.commit("a");
      return undefined;
    },
  };
}

test("R148 a run offers its id, its result, cancel and dispose", async () => {
  const run = await spawnProvider().start(plannedChild([{ says: "42" }]).request);
  expect(run).toMatchObject({ id: "child-1", result: expect.any(Promise) });
  run.cancel();
  expect((await run.result).stopReason).toBe("aborted");
  expect(await run.dispose()).toBeUndefined();
});
