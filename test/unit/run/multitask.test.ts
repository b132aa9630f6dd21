import { describe, expect, it } from "vitest";
import {
  type ActiveRun,
  decideNext,
  decideStart,
  MULTITASK_STRATEGIES,
  PENDING_RUNS_MAX,
} from "../../../src/domain/run/multitask.ts";
import type { RunStatus } from "../../../src/domain/run/run-status.ts";

const RUNNING: ActiveRun = { runId: "a", status: "running" };
const PENDING: ActiveRun = { runId: "b", status: "pending" };
const ENDED = (["success", "error", "timeout", "interrupted"] as RunStatus[]).map((status) => ({
  runId: status,
  status,
}));

describe("decideStart", () => {
  it.each(MULTITASK_STRATEGIES)("%s on a thread whose runs have all ended starts at once", (strategy) => {
    const decision = decideStart(ENDED, { strategy, isDelayed: false });
    expect(decision).toEqual({ ok: true, value: { kind: "start_now", cancel: [] } });
  });

  it.each(MULTITASK_STRATEGIES)("%s with a delay waits, also where nothing else does", (strategy) => {
    expect(decideStart([], { strategy, isDelayed: true })).toEqual({ ok: true, value: { kind: "wait", cancel: [] } });
  });

  it.each([
    [[RUNNING], "a"],
    [[PENDING], "b"],
    [[...ENDED, RUNNING, PENDING], "a"],
  ])("reject names the oldest active run of %j", (runs, runId) => {
    const decision = decideStart(runs, { strategy: "reject", isDelayed: false });
    expect(decision).toEqual({ ok: false, error: { reason: "thread_busy", runId } });
  });

  it("enqueue waits behind whatever is active and ends nothing", () => {
    const decision = decideStart([RUNNING, PENDING], { strategy: "enqueue", isDelayed: false });
    expect(decision).toEqual({ ok: true, value: { kind: "wait", cancel: [] } });
  });

  it("enqueue is refused past the bound of pending runs, and not at it", () => {
    const queue = (count: number): ActiveRun[] => [
      RUNNING,
      ...Array.from({ length: count }, (_, index): ActiveRun => ({ runId: `p${index}`, status: "pending" })),
    ];
    const full = decideStart(queue(PENDING_RUNS_MAX), { strategy: "enqueue", isDelayed: false });
    expect(full).toEqual({ ok: false, error: { reason: "queue_full", limit: PENDING_RUNS_MAX } });
    expect(decideStart(queue(PENDING_RUNS_MAX - 1), { strategy: "enqueue", isDelayed: false }).ok).toBe(true);
  });

  it.each(["interrupt", "rollback"] as const)("%s ends every active run and waits for it", (strategy) => {
    const decision = decideStart([...ENDED, RUNNING, PENDING], { strategy, isDelayed: false });
    const cancel = [
      { runId: "a", action: strategy },
      { runId: "b", action: strategy },
    ];
    expect(decision).toEqual({ ok: true, value: { kind: "wait", cancel } });
  });

  it.each([
    ["interrupt", "interrupt", []],
    ["interrupt", "rollback", []],
    ["rollback", "rollback", []],
    ["rollback", "interrupt", [{ runId: "a", action: "rollback" }]],
  ] as const)(
    "%s leaves a run that is ending by %s as it is, unless it takes more back",
    (strategy, stored, cancel) => {
      const decision = decideStart([{ ...RUNNING, cancelAction: stored }], { strategy, isDelayed: false });
      expect(decision).toEqual({ ok: true, value: { kind: "wait", cancel } });
    },
  );
});

describe("decideNext", () => {
  const later: ActiveRun = { runId: "c", status: "pending", dueAt: 2_000 };
  it.each([
    ["nothing while a run is at work", [RUNNING, PENDING], { kind: "none" }],
    ["nothing where none waits", ENDED, { kind: "none" }],
    ["the oldest that waits", [...ENDED, PENDING, { ...PENDING, runId: "c" }], { kind: "start", runId: "b" }],
    ["a delayed one at its time", [{ ...later, dueAt: 1_000 }], { kind: "start", runId: "c" }],
    ["nothing before that time", [later], { kind: "due", at: 2_000 }],
    ["nothing that came after a delayed one", [later, { ...PENDING, runId: "d" }], { kind: "due", at: 2_000 }],
  ] as const)("%s", (_what, runs, expected) => {
    expect(decideNext(runs, 1_000)).toEqual(expected);
  });
});
