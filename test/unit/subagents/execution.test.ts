import { describe, expect, test } from "vitest";
import { DelegationExecution } from "../../../src/agent/subagents/delegation-execution.ts";
import type { SubagentResult, SubagentRun } from "../../../src/agent/subagents/provider.ts";
import { TerminalCell } from "../../../src/agent/subagents/terminal-cell.ts";
import { ManualTimers } from "../../support/manual-timers.ts";
import { ReplyModel, textAnswer } from "../../support/reply-model.ts";

function execution(timers = new ManualTimers(), timeoutMs = 1_000): DelegationExecution {
  const model = new ReplyModel(() => textAnswer("x"));
  return new DelegationExecution({ agentName: "a", model, maxTurns: 5, timeoutMs, timers });
}

/** A run the test ends by hand; disposal is counted. */
function manualRun() {
  const ended = Promise.withResolvers<SubagentResult>();
  const run = {
    id: "r",
    disposals: 0,
    result: ended.promise,
    cancel: () => {},
    dispose: () => {
      run.disposals += 1;
      return Promise.resolve();
    },
  } satisfies SubagentRun & { disposals: number };
  return { run, end: (text: string) => ended.resolve({ output: [{ type: "text", text }], stopReason: "completed" }) };
}

describe("terminal cell", () => {
  test("the first of two racing terminal writes stands, whole and unchangeable", async () => {
    const cell = new TerminalCell();
    expect(cell.settle({ status: "completed", result: "42" })).toBe(true);
    expect(cell.settle({ status: "timed_out", error: "late" })).toBe(false);
    expect(cell.status).toBe("completed");
    expect(await cell.settled).toEqual({ status: "completed", result: "42" });
    expect(Object.isFrozen(cell.payload)).toBe(true);
  });

  test("whoever sees a terminal status sees its payload", () => {
    const cell = new TerminalCell();
    const seen: unknown[] = [];
    const outcome = {
      status: "completed" as const,
      get result() {
        seen.push(cell.status, cell.payload);
        return "42";
      },
    };
    cell.settle(outcome);
    expect(seen).toEqual(["in_progress", undefined]);
    expect(cell.payload?.result).toBe("42");
  });

  test("a status that is not terminal is a fault", () => {
    const cell = new TerminalCell();
    expect(() => cell.settle({ status: "running" as never })).toThrow(/running/);
  });
});

describe("execution", () => {
  test("R60 the result is settled when the signal fires, and a listener that re-enters changes nothing", async () => {
    const each = execution();
    const seen: unknown[] = [];
    each.signal.addEventListener("abort", () => seen.push(each.isSettled, each.cancel()));
    expect(each.cancel()).toBe(true);
    expect(seen).toEqual([true, false]);
    expect((await each.settled).status).toBe("cancelled");
  });

  test("a child that finishes leaves no timer and is disposed once", async () => {
    const timers = new ManualTimers();
    const each = execution(timers);
    const { run, end } = manualRun();
    const driven = each.drive(() => Promise.resolve(run));
    end("42");
    await driven;
    expect(await each.settled).toMatchObject({ status: "completed", result: "42", usage: null, modelName: "reply" });
    expect(run.disposals).toBe(1);
    expect(timers.pending()).toBe(0);
  });

  test("a child that is published after the time ran out is disposed, not driven", async () => {
    const timers = new ManualTimers();
    const each = execution(timers);
    const { run } = manualRun();
    const starting = Promise.withResolvers<SubagentRun>();
    const driven = each.drive(() => starting.promise);
    timers.advance(1_000);
    await driven;
    expect((await each.settled).status).toBe("timed_out");
    starting.resolve(run);
    await starting.promise;
    await Promise.resolve();
    expect(run.disposals).toBe(1);
  });

  test("a start that is refused is a failed delegation with the reason", async () => {
    const each = execution();
    await each.drive(() => Promise.reject(new Error("no such provider")));
    expect(await each.settled).toMatchObject({ status: "failed", error: "no such provider" });
  });

  test("half of a surrogate pair, which providers refuse in every later request, is in no result and no error", async () => {
    const half = "\ud83d";
    const [completed, failed] = [execution(), execution()];
    const { run, end } = manualRun();
    const driven = completed.drive(() => Promise.resolve(run));
    end(`so far ${half}`);
    await Promise.all([driven, failed.drive(() => Promise.reject(new Error(`down ${half}`)))]);
    expect((await completed.settled).result).toBe("so far \ufffd");
    expect((await failed.settled).error).toBe("down \ufffd");
  });
});
