import { describe, expect, it } from "vitest";
import { decideStart } from "../../../src/domain/run/multitask.ts";
import { decideThreadStatus, isTerminal, type RunStatus } from "../../../src/domain/run/run-status.ts";

describe("decideThreadStatus", () => {
  it.each([
    ["pending", false, "busy"],
    ["running", false, "busy"],
    ["success", false, "idle"],
    ["error", false, "error"],
    ["timeout", false, "error"],
    ["interrupted", false, "idle"],
    ["interrupted", true, "interrupted"],
  ] as const)("a newest run that is %s (waits: %s) makes the thread %s", (status, waitsForAnswer, expected) => {
    expect(decideThreadStatus({ status, waitsForAnswer })).toBe(expected);
  });

  it("calls a thread without runs idle", () => {
    expect(decideThreadStatus(undefined)).toBe("idle");
  });
});

describe("decideStart", () => {
  it.each(["pending", "running"] as const)("refuses a second run while one is %s, and names it", (status) => {
    const decision = decideStart([{ runId: "a", status }], "reject");
    expect(decision).toEqual({ ok: false, error: { reason: "thread_busy", runId: "a" } });
  });

  it("accepts when every run has ended", () => {
    const ended = (["success", "error", "timeout", "interrupted"] as RunStatus[]).map((status) => ({
      runId: status,
      status,
    }));
    expect(ended.every((run) => isTerminal(run.status))).toBe(true);
    expect(decideStart(ended, "reject").ok).toBe(true);
  });
});
