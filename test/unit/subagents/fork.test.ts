import { AIMessage, HumanMessage, isHumanMessage, type BaseMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../../src/agent/models/model.ts";
import { textOf, type SubagentRequest, type SubagentRun } from "../../../src/agent/subagents/provider.ts";
import { FORK_SEED_BYTES_MAX, forkProvider } from "../../../src/agent/subagents/providers/fork.ts";
import { STEERING_MESSAGES_MAX } from "../../../src/agent/subagents/steering-queue.ts";
import { agentFixture, humanInput, plainTool, runConfig, succeeded, toolResults } from "../../support/agent-fixture.ts";
import { gate, plannedChild, type ChildPlan } from "../../support/child-plan.ts";
import { delegationFixture, eventTypes, runLead, taskCalls, taskResults } from "../../support/delegation-fixture.ts";
import { callsAnswer } from "../../support/fake-chat-model.ts";
import { resultsIn, textAnswer, type Reply } from "../../support/reply-model.ts";

const SUBAGENTS = {
  custom_agents: { twin: { description: "continues", system_prompt: "You are a twin.", provider: "fork" as const } },
};

const texts = (messages: readonly BaseMessage[]) =>
  messages.filter(({ type }) => type !== "system").map((message) => `${message.type}: ${message.text}`);
const lastHuman = (request: ModelRequest) => request.messages.findLast(isHumanMessage)?.text;
const asTwin = (id: string, prompt: string) => taskCalls({ id, prompt, type: "twin" });

/** A lead that answers "go" at once, and then, told to "delegate", hands "count" to a fork. */
function forkingLead(twin: Reply, tools: Parameters<typeof delegationFixture>[0]["tools"] = []) {
  const reply: Reply = (request, config) => {
    const asked = lastHuman(request);
    if (asked === "go") return textAnswer("EARLIER-ANSWER", { input: 100, output: 100 });
    if (asked !== "delegate") return twin(request, config);
    const [result] = resultsIn(request);
    return result === undefined ? asTwin("call_a", "count") : textAnswer(`got ${result.text}`);
  };
  return delegationFixture({ lead: reply, child: reply, subagents: SUBAGENTS, tools });
}

async function runDelegating(fixture: ReturnType<typeof forkingLead>, signal?: AbortSignal) {
  await runLead(fixture);
  await fixture.graph.updateState(
    { configurable: { thread_id: "thread-1" } },
    { messages: [new HumanMessage({ id: "h2", content: "delegate" })] },
    "tools",
  );
  return runLead(fixture, { input: null, ...(signal !== undefined && { signal }) });
}

describe("a fork's seed", () => {
  test("R159 by its definition's provider, is the parent's completed turns: not the question going on, not the call that delegates", async () => {
    const seen: string[][] = [];
    const fixture = forkingLead((request) => {
      seen.push(texts(request.messages));
      return textAnswer("42", { input: 1, output: 1 });
    });
    const { state, events } = await runDelegating(fixture);
    expect(seen).toEqual([["human: go", "ai: EARLIER-ANSWER", "human: count"]]);
    expect(taskResults(state).map((each) => each.text)).toEqual(["Task Succeeded. Result: 42"]);
    expect(eventTypes(events)).toEqual(["task_started", "task_running", "task_completed"]);
    expect(events[1]).toMatchObject({ message_index: 1 });
    expect(events[2]).toMatchObject({ usage: { total_tokens: 2 } });
  });

  test("P5 the parent's text is never the result of a fork that says nothing", async () => {
    const fixture = forkingLead(() => textAnswer(""));
    const { state } = await runDelegating(fixture);
    const [result] = taskResults(state);
    expect(result?.status).toBe("error");
    expect(result?.text).not.toContain("EARLIER-ANSWER");
  });

  test("is empty in the parent's first turn, and the fork starts like a spawned child", async () => {
    const seen: string[][] = [];
    const reply: Reply = (request) => {
      if (lastHuman(request) !== "go") seen.push(texts(request.messages));
      if (lastHuman(request) !== "go") return textAnswer("42");
      return resultsIn(request).length === 0 ? asTwin("call_a", "count") : textAnswer("done");
    };
    await runLead(delegationFixture({ lead: reply, child: reply, subagents: SUBAGENTS }));
    expect(seen).toEqual([["human: count"]]);
  });

  test("P8 is bounded: a conversation past the bound is refused with what to do instead, before its child is asked", async () => {
    const asked: string[] = [];
    const reply: Reply = (request) => {
      const human = lastHuman(request) ?? "";
      if (human === "go") return textAnswer("é".repeat(FORK_SEED_BYTES_MAX / 2));
      if (human !== "delegate") asked.push(human);
      return resultsIn(request).length === 0 ? asTwin("call_a", "count") : textAnswer("done");
    };
    const { state } = await runDelegating(delegationFixture({ lead: reply, child: reply, subagents: SUBAGENTS }));
    const [result] = taskResults(state);
    expect(result?.status).toBe("error");
    expect(result?.text).toMatch(/too long to fork: \d+ bytes, at most \d+\. Use a subagent that does not see it/);
    expect(asked).toEqual([]);
  });

  test("P2 R129 is the same after a crash: the fork goes on from its own last step and repeats nothing", async () => {
    const crashed = new AbortController();
    const looked: string[] = [];
    const seen: string[][] = [];
    let isRecovered = false;
    const look = plainTool("look", (_args, runtime) => (looked.push(runtime.toolCallId), succeeded("seen")));
    const fixture = forkingLead(
      async (request, config) => {
        seen.push(texts(request.messages));
        if (resultsIn(request).length === 0) return callsAnswer([{ id: "inner", name: "look" }]);
        if (isRecovered) return textAnswer("one seen");
        queueMicrotask(() => crashed.abort());
        await new Promise((_, reject) => config.signal?.addEventListener("abort", () => reject(new Error("died"))));
        return textAnswer("never");
      },
      [look],
    );
    const first = await runDelegating(fixture, crashed.signal);
    expect(first.error).toBeDefined();
    isRecovered = true;
    const second = await runLead(fixture, { input: null });
    expect(second.error).toBeUndefined();
    expect(looked).toEqual(["inner"]);
    expect(seen.at(-1)).toEqual(["human: go", "ai: EARLIER-ANSWER", "human: count", "ai: ", "tool: seen"]);
    expect(taskResults(second.state).map((each) => each.text)).toEqual(["Task Succeeded. Result: one seen"]);
  });
});

const start = (plan: ChildPlan, more: Partial<SubagentRequest> = {}) => {
  const { request, asked } = plannedChild(plan, more);
  return forkProvider()
    .start(request)
    .then((run) => ({ run: run as Required<SubagentRun>, asked }));
};
const notResumable = expect.objectContaining({ name: "SubagentError", code: "NOT_RESUMABLE" });

describe("steering a fork", () => {
  test("messages reach the next model turn in their order, and their senders know it", async () => {
    const held = gate();
    const { run, asked } = await start([{ holds: held }, { says: "42" }]);
    await held.reached;
    const sent = [run.sendMessage("count twice"), run.sendMessage("and be quick")];
    held.open();
    await Promise.all(sent);
    expect(textOf(await run.result)).toBe("42");
    expect(texts(asked[1]?.messages ?? []).slice(-3)).toEqual([
      "tool: held",
      "human: count twice",
      "human: and be quick",
    ]);
    await run.dispose();
  });

  test("a message that no turn takes any more is refused, not dropped", async () => {
    const held = gate();
    const { run } = await start([{ holds: held }]);
    await held.reached;
    const sent = run.sendMessage("too late");
    run.cancel();
    await expect(sent).rejects.toEqual(notResumable);
    await expect(run.sendMessage("later still")).rejects.toEqual(notResumable);
    held.open();
    await run.dispose();
  });

  test("P8 messages that wait are bounded", async () => {
    const held = gate();
    const { run } = await start([{ holds: held }, { says: "42" }]);
    await held.reached;
    const sent = Array.from({ length: STEERING_MESSAGES_MAX }, (_, index) => run.sendMessage(`m${index}`));
    await expect(run.sendMessage("one more")).rejects.toThrow(RangeError);
    held.open();
    await Promise.all(sent);
    await run.dispose();
  });
});

describe("resuming a fork", () => {
  test("a settled child goes on in the same conversation, with a run and a result of its own", async () => {
    const told: string[] = [];
    const onMessage = (message: BaseMessage) => void told.push(message.text);
    const { run, asked } = await start([{ says: "42", settles: true }, { says: "84", settles: true }, { says: "" }], {
      onMessage,
    });
    expect(textOf(await run.result)).toBe("42");
    const second = await run.resume("double it");
    expect(textOf(await second.result)).toBe("84");
    expect(texts(asked[1]?.messages ?? [])).toEqual(["human: work", "ai: 42", "human: double it"]);
    const third = await second.resume?.("say nothing");
    expect(await third?.result).toMatchObject({ output: [], stopReason: "completed" });
    expect(told).toEqual(["42", "84", ""]);
    expect(textOf(await run.result)).toBe("42");
    await Promise.all([run.dispose(), second.dispose(), third?.dispose()]);
  });

  test("R141 R143 its depth is absolute: the same after resuming, one deeper than the parent's", async () => {
    const depths: unknown[] = [];
    const probe = plainTool("hold", (_args, { config }) => {
      depths.push([config.configurable?.["deputy_depth"], config.configurable?.["deputy_task_id"]]);
      return succeeded("held");
    });
    const planned = plannedChild([{ says: "a" }, { says: "42", settles: true }, { says: "b" }, { says: "84" }]);
    const { agent, parent } = planned.request;
    const request = { ...planned.request, agent: { ...agent, tools: [probe] }, parent: { ...parent, depth: 2 } };
    const run = (await forkProvider().start(request)) as Required<SubagentRun>;
    await run.result;
    const next = await run.resume("more");
    await next.result;
    expect(depths).toEqual([
      [3, "child-1"],
      [3, "child-1"],
    ]);
    await Promise.all([run.dispose(), next.dispose()]);
  });

  test("a resumed run that cannot be announced is disposed, and its caller gets the fault", async () => {
    const { request } = plannedChild([{ says: "42", settles: true }, { holds: gate() }]);
    const resumed: SubagentRun[] = [];
    const onResume = (next: SubagentRun) => {
      resumed.push(next);
      throw new Error("no entropy");
    };
    const run = (await forkProvider().start({ ...request, onResume })) as Required<SubagentRun>;
    await run.result;
    await expect(run.resume("more")).rejects.toThrow("no entropy");
    expect((await resumed[0]?.result)?.stopReason).toBe("aborted");
    await run.dispose();
  });

  test("P8 of a conversation past the bound of a seed is refused with what to do instead, and the child is not asked", async () => {
    const { request, asked } = plannedChild([
      { says: "é".repeat(FORK_SEED_BYTES_MAX / 2), settles: true },
      { says: "84" },
    ]);
    const run = await forkProvider().start(request);
    await run.result;
    await expect(run.resume?.("double it")).rejects.toThrow(
      /too long to fork: \d+ bytes, at most \d+\. Use a subagent/,
    );
    expect(asked).toHaveLength(1);
    await run.dispose();
  });

  test("is NOT_RESUMABLE while the child runs, once it was resumed, and after dispose", async () => {
    const held = gate();
    const { run } = await start([{ holds: held }, { says: "42", settles: true }, { says: "84" }]);
    await held.reached;
    await expect(run.resume("now")).rejects.toEqual(notResumable);
    held.open();
    await run.result;
    const next = (await run.resume("go on")) as Required<SubagentRun>;
    await expect(run.resume("twice")).rejects.toEqual(notResumable);
    await run.dispose();
    expect(textOf(await next.result)).toBe("84");
    await next.dispose();
    await expect(next.resume("after")).rejects.toEqual(notResumable);
    await expect(next.sendMessage("after")).rejects.toEqual(notResumable);
  });

  test("a signal that has fired rejects it, and the child is not asked", async () => {
    const abort = new AbortController();
    const { run, asked } = await start([{ says: "42", settles: true }, { says: "never" }], { signal: abort.signal });
    await run.result;
    abort.abort(new Error("run cancelled"));
    await expect(run.resume("go on")).rejects.toThrow("run cancelled");
    expect(asked).toHaveLength(1);
    await run.dispose();
  });

  test("a child that was stopped inside a call goes on without that call", async () => {
    const held = gate();
    const { run, asked } = await start([{ holds: held }, { says: "42" }]);
    await held.reached;
    run.cancel();
    await run.result;
    held.open();
    const next = await run.resume("start over");
    expect(textOf(await next.result)).toBe("42");
    expect(texts(asked[1]?.messages ?? [])).toEqual(["human: work", "human: start over"]);
    await Promise.all([run.dispose(), next.dispose()]);
  });

  test("R129 inside a task, the resumed child keeps its checkpoints apart from the first one's", async () => {
    const planned = plannedChild([{ says: "42", settles: true }, { says: "84" }]);
    const twice = plainTool("twice", async (_args, { config }) => {
      const { services, name, depth } = planned.request.parent;
      const parent = { services, name, depth, config };
      const run = await forkProvider().start({ ...planned.request, parent });
      const first = textOf(await run.result);
      const next = (await run.resume?.("double it")) as SubagentRun;
      const second = textOf(await next.result);
      await Promise.all([run.dispose(), next.dispose()]);
      return succeeded(`${first} then ${second}`);
    });
    const plan = [callsAnswer([{ id: "call_a", name: "twice" }]), new AIMessage("done")];
    const { graph, saver } = agentFixture(plan, { tools: [twice] });
    const state = await graph.invoke(humanInput("go", "h1"), runConfig());
    expect(toolResults(state as never).map((each) => each.text)).toEqual(["42 then 84"]);
    const stored = (saver as unknown as { storage: Record<string, Record<string, unknown>> }).storage["thread-1"] ?? {};
    expect(Object.keys(stored).filter((namespace) => namespace !== "")).toHaveLength(2);
  });
});
