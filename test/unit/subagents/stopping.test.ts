import { describe, expect, test } from "vitest";
import { AIMessage } from "@langchain/core/messages";
import { z } from "zod";
import { QUIESCENCE_GRACE_MS } from "../../../src/agent/subagents/delegation-execution.ts";
import { ModelFailure } from "../../../src/agent/models/model.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import {
  delegatesOnce,
  delegationFixture,
  eventTypes,
  runLead,
  taskCalls,
  taskResults,
  type DelegationFixture,
} from "../../support/delegation-fixture.ts";
import { promptOf, resultsIn, textAnswer } from "../../support/reply-model.ts";

function callOf(name: string, id: string, args: Record<string, unknown> = {}): AIMessage {
  return new AIMessage({ content: "", tool_calls: [{ id, name, args, type: "tool_call" }] });
}

/** Lets every promise that can go on do so; timers stand still. */
async function settleMicrotasks(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

function statusOf(run: Awaited<ReturnType<typeof runLead>>): unknown[] {
  return taskResults(run.state).map((result) => result.additional_kwargs["subagent_status"]);
}

describe("cancel and timeout", () => {
  test("R37 a delegation cancelled while it waits ends at once, asks no model and leaves the queue", async () => {
    const release = Promise.withResolvers<void>();
    const fixture = delegationFixture({
      admission: { maxRunning: 1 },
      lead: delegatesOnce({ id: "call_a", prompt: "first" }, { id: "call_b", prompt: "second" }),
      child: async (request) => {
        if (promptOf(request) === "first") await release.promise;
        return textAnswer(`did ${promptOf(request)}`);
      },
    });
    const run = runLead(fixture, {
      onEvent(event) {
        if (event.type === "task_cancelled") release.resolve();
        if (event.type === "task_started" && event.task_id === "call_b") {
          queueMicrotask(() => fixture.journal.cancel("call_b"));
        }
      },
    });
    const ended = await run;
    expect(statusOf(ended)).toEqual(["completed", "cancelled"]);
    expect(taskResults(ended.state)[1]?.text).toBe("Task cancelled by user. Error: Cancelled by user");
    expect(taskResults(ended.state)[1]?.status).toBe("error");
    expect(eventTypes(ended.events, "call_b")).toEqual(["task_started", "task_cancelled"]);
    expect(fixture.model.requests.map(promptOf)).not.toContain("second");
    expect(fixture.admission.snapshot()).toMatchObject({ running: 0, queued: 0 });
  });

  test("R60 a cancel during a tool settles the result first, then the child's tool sees the signal", async () => {
    const order: string[] = [];
    const fixture: DelegationFixture = delegationFixture({
      tools: [
        plainTool("wait", async (_args, runtime) => {
          queueMicrotask(() => fixture.journal.cancel("call_a"));
          await new Promise<void>((resolve) => runtime.signal.addEventListener("abort", () => resolve()));
          order.push("signal");
          return succeeded("late");
        }),
      ],
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: () => callOf("wait", "inner"),
    });
    const settle = fixture.service.listen(() => undefined);
    const run = await runLead(fixture, {
      onEvent: (event) => event.type === "task_cancelled" && order.push("settled"),
    });
    settle();
    await settleMicrotasks();
    expect(statusOf(run)).toEqual(["cancelled"]);
    expect(order).toContain("signal");
    expect(fixture.admission.snapshot().running).toBe(0);
  });

  test("a child that ignores its signal is cancelled all the same and keeps its slot for the grace only", async () => {
    const stubborn = Promise.withResolvers<void>();
    const fixture: DelegationFixture = delegationFixture({
      tools: [
        plainTool("ignore", async () => {
          queueMicrotask(() => fixture.journal.cancel("call_a"));
          await stubborn.promise;
          return succeeded("late");
        }),
      ],
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: () => callOf("ignore", "inner"),
    });
    const run = await runLead(fixture);
    expect(statusOf(run)).toEqual(["cancelled"]);
    fixture.timers.advance(QUIESCENCE_GRACE_MS);
    await settleMicrotasks();
    expect(fixture.admission.snapshot().running).toBe(0);
    stubborn.resolve();
  });

  test("a delegation that outlives its time is timed out; what it answers later changes nothing", async () => {
    const late = Promise.withResolvers<void>();
    const fixture: DelegationFixture = delegationFixture({
      subagents: { timeout_seconds: 5 },
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: async () => {
        fixture.timers.advance(5_000);
        late.resolve();
        return textAnswer("too late", { input: 1, output: 1 });
      },
    });
    const run = await runLead(fixture);
    await late.promise;
    await settleMicrotasks();
    expect(taskResults(run.state)[0]?.text).toBe("Task timed out. Error: Execution timed out after 5 seconds");
    expect(statusOf(run)).toEqual(["timed_out"]);
    expect(eventTypes(run.events)).toEqual(["task_started", "task_timed_out"]);
    expect(fixture.admission.snapshot().running).toBe(0);
  });

  test("the time budget starts at the grant: waiting in the queue does not use it up", async () => {
    const release = Promise.withResolvers<void>();
    const fixture: DelegationFixture = delegationFixture({
      admission: { maxRunning: 1 },
      subagents: { timeout_seconds: 1_000, agents: { bash: { timeout_seconds: 5 } } },
      lead: delegatesOnce({ id: "call_a", prompt: "first" }, { id: "call_b", prompt: "second", type: "bash" }),
      child: async (request) => {
        if (promptOf(request) === "first") await release.promise;
        return textAnswer(`did ${promptOf(request)}`);
      },
    });
    const run = runLead(fixture, {
      onEvent(event) {
        if (event.type !== "task_started" || event.task_id !== "call_b") return;
        setImmediate(() => {
          fixture.timers.advance(60_000);
          release.resolve();
        });
      },
    });
    expect(statusOf(await run)).toEqual(["completed", "completed"]);
  });

  test("timeout after cancel and cancel after timeout: the first one stands", async () => {
    const both = (first: "cancel" | "timeout") => {
      const fixture: DelegationFixture = delegationFixture({
        subagents: { timeout_seconds: 5 },
        lead: delegatesOnce({ id: "call_a", prompt: "count" }),
        child: () => {
          if (first === "timeout") fixture.timers.advance(5_000);
          fixture.journal.cancel("call_a");
          if (first === "cancel") fixture.timers.advance(5_000);
          return textAnswer("late");
        },
      });
      return runLead(fixture);
    };
    expect(statusOf(await both("cancel"))).toEqual(["cancelled"]);
    expect(statusOf(await both("timeout"))).toEqual(["timed_out"]);
  });

  test("a run that is aborted cancels its delegations: model call ended, slot free, usage reported", async () => {
    const abort = new AbortController();
    let childSignal: AbortSignal | undefined;
    const fixture = delegationFixture({
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: async (_request, config) => {
        childSignal = config.signal;
        queueMicrotask(() => abort.abort());
        await new Promise((_, reject) => config.signal?.addEventListener("abort", () => reject(new Error("ended"))));
        return textAnswer("never");
      },
    });
    const run = await runLead(fixture, { signal: abort.signal });
    await settleMicrotasks();
    expect(run.error).toBeDefined();
    expect(childSignal?.aborted).toBe(true);
    expect(fixture.admission.snapshot().running).toBe(0);
  });
});

describe("admission", () => {
  test.each([
    ["admission_rejected", { maxRunning: 1, policy: "reject" as const }],
    ["admission_queue_full", { maxRunning: 1, maxQueued: 0 }],
  ])("R57 %s ends a delegation before any model call, with its code and without tokens", async (code, admission) => {
    const release = Promise.withResolvers<void>();
    const fixture = delegationFixture({
      admission,
      lead: delegatesOnce({ id: "call_a", prompt: "first" }, { id: "call_b", prompt: "second" }),
      child: async (request) => {
        await release.promise;
        return textAnswer(`did ${promptOf(request)}`);
      },
    });
    const run = await runLead(fixture, { onEvent: (event) => event.type === "task_failed" && release.resolve() });
    const refused = taskResults(run.state)[1];
    expect(refused?.additional_kwargs).toMatchObject({ subagent_status: "failed", subagent_error_code: code });
    expect(refused?.additional_kwargs).not.toHaveProperty("subagent_token_usage");
    expect(refused?.status).toBe("error");
    expect(fixture.model.requests.map(promptOf)).not.toContain("second");
  });

  test("R57 a wait past the queue timeout fails with admission_timeout and frees its place", async () => {
    const release = Promise.withResolvers<void>();
    const fixture: DelegationFixture = delegationFixture({
      admission: { maxRunning: 1, queueTimeoutMs: 1_000 },
      lead: delegatesOnce({ id: "call_a", prompt: "first" }, { id: "call_b", prompt: "second" }),
      child: async (request) => {
        await release.promise;
        return textAnswer(`did ${promptOf(request)}`);
      },
    });
    const run = runLead(fixture, {
      onEvent(event) {
        if (event.type === "task_failed") release.resolve();
        if (event.type === "task_started" && event.task_id === "call_b") {
          setImmediate(() => fixture.timers.advance(1_000));
        }
      },
    });
    const [, refused] = taskResults((await run).state);
    expect(refused?.additional_kwargs).toMatchObject({ subagent_error_code: "admission_timeout" });
    expect(fixture.admission.snapshot()).toMatchObject({ running: 0, queued: 0 });
  });

  test("nested delegation completes at max_running 1: the waiting parent lends its slot", async () => {
    const fixture = delegationFixture({
      admission: { maxRunning: 1 },
      subagents: {
        custom_agents: {
          boss: { description: "delegates", system_prompt: "Delegate.", tools: ["task"], disallowed_tools: [] },
        },
      },
      lead: delegatesOnce({ id: "call_a", prompt: "outer", type: "boss" }),
      child: (request) => {
        if (promptOf(request) !== "outer") return textAnswer(`inner ${promptOf(request)}`);
        const results = resultsIn(request);
        if (results.length > 0) return textAnswer(results.map((each) => each.text).join(" & "));
        return taskCalls({ id: "call_b", prompt: "one" }, { id: "call_c", prompt: "two" });
      },
    });
    const run = await runLead(fixture);
    expect(taskResults(run.state)[0]?.text).toBe(
      "Task Succeeded. Result: Task Succeeded. Result: inner one & Task Succeeded. Result: inner two",
    );
    expect(eventTypes(run.events, "call_c")).toEqual(["task_started", "task_running", "task_completed"]);
    expect(fixture.admission.snapshot().running).toBe(0);
  });

  test.each([
    ["of nobody's making", {}],
    ["that a client made up", { deputy_depth: -9 }],
    ["that is no depth", { deputy_depth: 0.5 }],
  ])(
    "R143 depth is bounded: a chain of children ends at the limit with a reason, under a depth %s",
    async (_whose, forged) => {
      const levels = new Set<number>();
      const boss = { description: "d", system_prompt: "D.", tools: ["task"], disallowed_tools: [] };
      const fixture = delegationFixture({
        admission: { maxRunning: 1 },
        subagents: { custom_agents: { boss } },
        lead: delegatesOnce({ id: "call_0", prompt: "level 1", type: "boss" }),
        child: (request) => {
          const results = resultsIn(request);
          if (results.length > 0) return textAnswer(results[0]?.text ?? "");
          const level = Number(promptOf(request).split(" ")[1]);
          levels.add(level);
          return taskCalls({ id: `call_${level}`, prompt: `level ${level + 1}`, type: "boss" });
        },
      });
      const configurable = { thread_id: "thread-1", run_id: "run-1", ...forged };
      const run = await runLead(fixture, { config: { configurable } });
      expect(taskResults(run.state)[0]?.text).toContain("Delegation depth 4 exceeds the limit of 3");
      expect([...levels]).toEqual([1, 2, 3]);
    },
  );
});

describe("R98 an answer without text and calls", () => {
  test("is no success when the child never spoke, and keeps earlier text when it did", async () => {
    const empty = () => Promise.reject(new ModelFailure("empty", "no text and no calls"));
    const lead = delegatesOnce({ id: "call_a", prompt: "count" });
    const mute = await runLead(delegationFixture({ lead, child: empty }));
    expect(taskResults(mute.state)[0]?.text).toBe("Task failed. Error: No response generated");
    const tools = [plainTool("look", () => succeeded("seen"), z.object({}))];
    const spoke = await runLead(
      delegationFixture({
        tools,
        lead,
        child: (request) => {
          if (resultsIn(request).length > 0) return empty();
          const call = callOf("look", "inner");
          return new AIMessage({ content: "it is 7", tool_calls: call.tool_calls ?? [] });
        },
      }),
    );
    expect(taskResults(spoke.state)[0]?.text).toBe("Task Succeeded. Result: it is 7");
  });
});
