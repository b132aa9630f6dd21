import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decideRecovery,
  type InterruptedRun,
  newRecoveryRecord,
  noteOutOfMemory,
  noteWaiting,
  RECOVERY_DEFERRALS_MAX,
  type RecoveryInput,
  type RecoveryRecord,
} from "../../../src/domain/run/recovery.ts";

const NOW = 1_000_000;
const BUDGET = { attemptsMax: 3, noProgressMs: 60_000, outOfMemoryMax: 2 };

function interrupted(overrides: Partial<InterruptedRun> = {}): InterruptedRun {
  return {
    cancelRequested: false,
    start: "input",
    answers: [],
    baseCheckpointId: "base",
    recovery: { attempts: 0, headCheckpointId: "base", progressAt: NOW },
    ...overrides,
  };
}

/** Without children the newest checkpoint is the head. */
function decide(overrides: Partial<RecoveryInput> = {}) {
  const newestCheckpointId = overrides.headCheckpointId === undefined ? "base" : overrides.headCheckpointId;
  const evidence = {
    headCheckpointId: "base",
    newestCheckpointId,
    pending: [],
    headIsStale: false,
    atBreakpoint: false,
  };
  const input = { run: interrupted(), ...evidence, budget: BUDGET, now: NOW };
  return decideRecovery({ ...input, ...overrides });
}

describe("decideRecovery (P1, P2)", () => {
  it("starts with the stored input when the head is still the base: a blind resume would end the run as a success", () => {
    expect(decide()).toMatchObject({ kind: "start_with_input", recovery: { attempts: 1 } });
    const empty = interrupted({
      baseCheckpointId: null,
      recovery: { attempts: 0, headCheckpointId: null, progressAt: NOW },
    });
    expect(decide({ run: empty, headCheckpointId: null })).toMatchObject({ kind: "start_with_input" });
  });

  it("resumes once anything of the run was committed", () => {
    expect(decide({ headCheckpointId: "later" })).toMatchObject({ kind: "resume" });
    const onEmpty = interrupted({ baseCheckpointId: null });
    expect(decide({ run: onEmpty, headCheckpointId: "first" })).toMatchObject({ kind: "resume" });
  });

  it("resumes a run that was accepted without input", () => {
    expect(decide({ run: interrupted({ start: "nothing" }) })).toMatchObject({ kind: "resume" });
  });

  it("finishes an accepted cancel instead of resuming it", () => {
    expect(decide({ run: interrupted({ cancelRequested: true }), headCheckpointId: "later" })).toEqual({
      kind: "finish_cancel",
    });
  });

  it("gives up after the attempts without progress, and says how many", () => {
    const stuck = interrupted({ recovery: { attempts: 3, headCheckpointId: "base", progressAt: NOW } });
    expect(decide({ run: stuck })).toEqual({
      kind: "give_up",
      message: "recovery gave up: 3 attempts without progress",
    });
  });

  it("counts attempts anew when the head moved", () => {
    const moved = interrupted({ recovery: { attempts: 3, headCheckpointId: "base", progressAt: 0 } });
    expect(decide({ run: moved, headCheckpointId: "later" })).toMatchObject({
      kind: "resume",
      recovery: { attempts: 1, headCheckpointId: "later", progressAt: NOW },
    });
  });

  it("counts attempts anew when only a child moved; the head alone still tells whether the run began", () => {
    const recovery = { attempts: 3, headCheckpointId: "step of a child", progressAt: 0 };
    const delegating = { headCheckpointId: "later", newestCheckpointId: "next step of the child" };
    expect(decide({ run: interrupted({ recovery }), ...delegating })).toMatchObject({
      kind: "resume",
      recovery: { attempts: 1, headCheckpointId: "next step of the child", progressAt: NOW },
    });
    expect(decide({ newestCheckpointId: "left of another run" })).toMatchObject({ kind: "start_with_input" });
  });

  it("gives up when attempts go on without progress past the window", () => {
    const slow = interrupted({ recovery: { attempts: 1, headCheckpointId: "base", progressAt: NOW - 61_000 } });
    expect(decide({ run: slow })).toMatchObject({ kind: "give_up" });
  });

  it("never recovers a run more often than its budget without progress", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), (attemptsMax) => {
        let run = interrupted();
        let recoveries = 0;
        for (;;) {
          const decision = decide({ run, budget: { ...BUDGET, attemptsMax } });
          if (decision.kind === "give_up") break;
          if (!("recovery" in decision)) throw new Error(`nobody asked for ${decision.kind}`);
          run = { ...run, recovery: decision.recovery };
          recoveries += 1;
        }
        expect(recoveries).toBe(attemptsMax);
      }),
    );
  });
});

describe("the base-checkpoint rule for commands", () => {
  const answering = (...answers: string[]) => interrupted({ start: "command", answers });

  it.each([
    ["nothing was used: all of it again", ["a", "b"], ["a", "b"], { kind: "start_with_command", answers: ["a", "b"] }],
    ["one answer was used: the other again", ["a", "b"], ["b", "c"], { kind: "start_with_command", answers: ["b"] }],
    ["all were used and the graph asks again", ["a"], ["c"], { kind: "wait" }],
    ["all were used and nothing is asked: the step is done", ["a"], [], { kind: "resume" }],
    ["no answers, an update alone", [], ["q"], { kind: "start_with_command", answers: [] }],
  ])("%s", (_name, answers, pending, expected) => {
    expect(decide({ run: answering(...answers), pending })).toMatchObject(expected);
  });

  it("resumes when a child was asked further than the head tells: the head's question is not shown again", () => {
    expect(decide({ run: answering("a"), pending: [], headIsStale: true })).toMatchObject({ kind: "resume" });
    expect(decide({ run: answering("a"), pending: ["other"], headIsStale: true })).toMatchObject({ kind: "resume" });
  });

  it("resumes past the base, whatever is asked there", () => {
    expect(decide({ run: answering("a"), headCheckpointId: "later", pending: ["a"] })).toMatchObject({
      kind: "resume",
    });
  });

  it("ends a run that stands at its breakpoint instead of passing it; at its base it has not reached one", () => {
    expect(decide({ headCheckpointId: "later", atBreakpoint: true })).toEqual({ kind: "wait" });
    expect(decide({ run: interrupted({ start: "nothing" }), atBreakpoint: true })).toMatchObject({ kind: "resume" });
  });
});

describe("what costs no attempt (P4)", () => {
  const spent = (more: Partial<RecoveryRecord> = {}): RecoveryRecord => ({
    attempts: 3,
    headCheckpointId: "base",
    progressAt: NOW - 600_000,
    ...more,
  });

  it("a deploy: another version than the one that started the run", () => {
    const run = interrupted({ recovery: spent({ version: "v1" }) });
    expect(decide({ run, version: "v2" })).toMatchObject({
      kind: "start_with_input",
      recovery: { attempts: 3, deferrals: 1, version: "v2", progressAt: NOW },
    });
    expect(decide({ run, version: "v1" })).toMatchObject({ kind: "give_up" });
    expect(decide({ run })).toMatchObject({ kind: "give_up" });
  });

  it("a wait for a slot, through any number of crashes apart further than the window", () => {
    let recovery = newRecoveryRecord("base", { now: 0 });
    for (let crash = 1; crash <= 12; crash += 1) {
      recovery = noteWaiting(recovery);
      const decision = decide({ run: interrupted({ recovery }), now: crash * 400_000 });
      expect(decision).toMatchObject({ kind: "start_with_input", recovery: { attempts: 0 } });
      if ("recovery" in decision) recovery = decision.recovery;
      expect(recovery.waited).toBeUndefined();
    }
  });

  it("P8: but not for ever", () => {
    const run = interrupted({ recovery: spent({ waited: true, deferrals: RECOVERY_DEFERRALS_MAX }) });
    expect(decide({ run })).toMatchObject({ kind: "give_up" });
  });

  it("the time in which nobody looked: the window begins with the first recovery", () => {
    const first = decide({ run: interrupted({ recovery: newRecoveryRecord("base", { now: 0 }) }) });
    expect(first).toMatchObject({ recovery: { attempts: 1, progressAt: NOW } });
  });
});

describe("out of memory", () => {
  it("has a budget of its own, which progress does not give back", () => {
    let recovery = newRecoveryRecord("base", { now: NOW });
    for (let time = 1; time <= 2; time += 1) {
      recovery = noteOutOfMemory(recovery);
      const decision = decide({ run: interrupted({ recovery }), headCheckpointId: `step ${time}` });
      expect(decision).toMatchObject({ kind: "resume", recovery: { outOfMemory: time } });
      if ("recovery" in decision) recovery = decision.recovery;
    }
    expect(decide({ run: interrupted({ recovery: noteOutOfMemory(recovery) }), headCheckpointId: "step 3" })).toEqual({
      kind: "give_up",
      message: "recovery gave up: the run exceeded the memory limit 3 times",
    });
  });
});
