/** How a delegation ends (delegation-behaviour 1.5), rule by rule; `stopping.test.ts` has the same with a whole lead. */
import { type AIMessage, HumanMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import type { TaskEvent } from "../../../src/domain/delegation/task-events.ts";
import { DelegationExecution } from "../../../src/agent/subagents/delegation-execution.ts";
import type { Delegation } from "../../../src/agent/subagents/executor.ts";
import type { ChildAgent } from "../../../src/agent/subagents/provider.ts";
import { spawnProvider } from "../../../src/agent/subagents/providers/spawn.ts";
import { fixtureServices } from "../../support/agent-fixture.ts";
import { gate } from "../../support/child-plan.ts";
import {
  delegatesOnce,
  delegationFixture,
  eventTypes,
  runLead,
  taskResults,
} from "../../support/delegation-fixture.ts";
import { leadFixture } from "../../support/lead-fixture.ts";
import { ManualTimers } from "../../support/manual-timers.ts";
import { ReplyModel, textAnswer } from "../../support/reply-model.ts";

/** A delegation of a caller without a graph around it. */
function alone(agent: ChildAgent, more: Partial<Delegation> = {}) {
  const events: TaskEvent[] = [];
  const parent = { name: "lead", depth: 0, config: {}, services: fixtureServices(), checkpointer: false } as const;
  const delegation: Delegation = {
    taskId: "call_a",
    description: "count",
    prompt: "count",
    agent,
    provider: "spawn",
    timeoutSeconds: 60,
    parent,
    signal: new AbortController().signal,
    emit: (event) => void events.push(event),
    ...more,
  };
  return { delegation, events };
}

const fixtureWithout = () =>
  delegationFixture({ lead: delegatesOnce(), child: () => textAnswer("x"), admission: { maxRunning: 1 } });

function agentOf(model: ReplyModel): { -readonly [K in keyof ChildAgent]: ChildAgent[K] } {
  return { name: "worker", systemPrompt: "Work.", model, tools: [], hooks: [], maxTurns: 5 };
}

describe("a terminal write", () => {
  test("freezes the token count: what the child's last answer used does not reach it", async () => {
    const model = new ReplyModel(() => textAnswer("x"));
    const spec = { agentName: "a", model, maxTurns: 5, timeoutMs: 1_000, timers: new ManualTimers() };
    const execution = new DelegationExecution(spec);
    execution.tokens.record(Object.assign(textAnswer("one", { input: 5, output: 1 }), { id: "m1" }));
    execution.cancel();
    execution.tokens.record(Object.assign(textAnswer("two", { input: 50, output: 10 }), { id: "m2" }));
    const usage = { input_tokens: 5, output_tokens: 1, total_tokens: 6 };
    expect((await execution.settled).usage).toEqual(usage);
    expect(execution.settle({ status: "completed", result: "late" })).toBe(false);
    expect(await execution.settled).toMatchObject({ status: "cancelled", usage });
  });

  test("a child that answers after its cancel changes neither result nor events", async () => {
    const late = gate();
    const fixture = delegationFixture({
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: async (_request, config) => {
        config.signal?.addEventListener("abort", () => late.open());
        queueMicrotask(() => fixture.journal.cancel("call_a"));
        await late.pass();
        return textAnswer("too late");
      },
    });
    const { state, events } = await runLead(fixture);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(taskResults(state)[0]?.additional_kwargs["subagent_status"]).toBe("cancelled");
    expect(eventTypes(events)).toEqual(["task_started", "task_cancelled"]);
  });
});

describe("a delegation cancelled before it starts", () => {
  test("is told as started and cancelled, asks no model and takes no slot", async () => {
    const fixture = fixtureWithout();
    const model = new ReplyModel(() => textAnswer("never"));
    const { delegation, events } = alone(agentOf(model), { signal: AbortSignal.abort() });
    expect(await fixture.executor.run(delegation)).toMatchObject({ status: "cancelled", usage: null });
    expect(events.map(({ type }) => type)).toEqual(["task_started", "task_cancelled"]);
    expect(model.requests).toEqual([]);
    expect(fixture.admission.snapshot()).toMatchObject({ running: 0, queued: 0 });
  });
});

describe("R68 one configuration", () => {
  test("holds from acceptance to the result, whatever its giver does with it while the delegation waits", async () => {
    const fixture = fixtureWithout();
    const first = await fixture.admission.acquire({ taskId: "other", signal: new AbortController().signal });
    const [model, other] = [
      new ReplyModel(() => textAnswer("42"), "first"),
      new ReplyModel(() => textAnswer("0"), "other"),
    ];
    const agent = agentOf(model);
    const { delegation, events } = alone(agent);
    const running = fixture.executor.run(delegation);
    await new Promise((resolve) => setImmediate(resolve));
    expect(fixture.admission.snapshot().queued).toBe(1);
    Object.assign(agent, { model: other, name: "renamed", systemPrompt: "Changed.", maxTurns: 0, tools: [] });
    if (first.ok) first.value.release();
    expect(await running).toMatchObject({ status: "completed", result: "42", modelName: "first" });
    expect(other.requests).toEqual([]);
    expect(model.requests[0]?.messages[0]?.text).toBe("Work.");
    expect([...new Set(events.map(({ model_name }) => model_name))]).toEqual(["first"]);
  });

  test("is the definition as the delegation found it: a change during the child's first turn is not seen in its next", async () => {
    const { graph, config, options } = leadFixture({
      deputy: { subagents: { agents: { "general-purpose": { max_turns: 3 } } } },
    });
    const script = `@ delegate general-purpose :: count :: <<'CHILD'\n@ call ls {}\n@ say done\nCHILD\n@ say {{result:1}}`;
    const agents = options.deputy?.subagents.agents as Record<string, { max_turns?: number }>;
    const stream = await graph.stream(
      { messages: [new HumanMessage({ id: "h1", content: script })] },
      { ...config, streamMode: "custom", durability: "sync" },
    );
    const types: unknown[] = [];
    for await (const event of stream as AsyncIterable<{ type: string }>) {
      types.push(event.type);
      if (event.type === "task_running") agents["general-purpose"] = { max_turns: 1 };
    }
    expect(types.at(-1)).toBe("task_completed");
  });
});

describe("steps that nobody else stores", () => {
  test("R115 those of a child of another process go to the journal as they come, those of a graph here do not", async () => {
    const fixture = fixtureWithout();
    const stepped: unknown[] = [];
    Object.assign(fixture.journal, { stepped: (taskId: string, { text }: AIMessage) => stepped.push([taskId, text]) });
    const model = new ReplyModel(() => textAnswer("42"));
    await fixture.executor.run(alone(agentOf(model)).delegation);
    expect(stepped).toEqual([]);
    fixture.service.register({
      ...spawnProvider(),
      name: "elsewhere",
      startsOnce: true,
    });
    const { delegation } = alone(agentOf(model), { provider: "elsewhere", taskId: "call_b" });
    await fixture.executor.run(delegation);
    expect(stepped).toEqual([["call_b", "42"]]);
  });
});

describe("R57 a refused delegation", () => {
  test("counts toward the run's cap and uses no tokens", async () => {
    const deputy = {
      subagent_runtime: { max_running: 1, admission_policy: "reject" as const },
      subagents: { max_total_per_run: 2 },
    };
    const { graph, config, admission } = leadFixture({ deputy });
    admission.grantBatch("someone's batch", 1);
    const delegate = "@ delegate general-purpose :: count :: say one";
    const script = [delegate, delegate, delegate, "@ say end"].join("\n");
    const state = await graph.invoke({ messages: [new HumanMessage({ id: "h1", content: script })] }, config);
    const results = taskResults(state);
    expect(results.map(({ additional_kwargs: kwargs }) => kwargs["subagent_error_code"])).toEqual([
      "admission_rejected",
      "admission_rejected",
    ]);
    expect(results.every(({ additional_kwargs: kwargs }) => !("subagent_token_usage" in kwargs))).toBe(true);
    expect(JSON.stringify(state.messages.at(-1)?.additional_kwargs ?? {})).toContain("subagent_limit_capped");
  });
});
