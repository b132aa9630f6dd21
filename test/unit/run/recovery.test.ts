import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decideRecovery, type InterruptedRun, type RecoveryInput } from "../../../src/domain/run/recovery.ts";

const NOW = 1_000_000;
const BUDGET = { attemptsMax: 3, noProgressMs: 60_000 };

function interrupted(overrides: Partial<InterruptedRun> = {}): InterruptedRun {
  return {
    cancelRequested: false,
    hasInput: true,
    baseCheckpointId: "base",
    recovery: { attempts: 0, headCheckpointId: "base", progressAt: NOW },
    ...overrides,
  };
}

/** Without children the newest checkpoint is the head. */
function decide(overrides: Partial<RecoveryInput> = {}) {
  const newestCheckpointId = overrides.headCheckpointId === undefined ? "base" : overrides.headCheckpointId;
  const input = { run: interrupted(), headCheckpointId: "base", newestCheckpointId, budget: BUDGET, now: NOW };
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
    expect(decide({ run: interrupted({ hasInput: false }) })).toMatchObject({ kind: "resume" });
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
          const decision = decide({ run, budget: { attemptsMax, noProgressMs: 60_000 } });
          if (decision.kind === "give_up") break;
          if (decision.kind === "finish_cancel") throw new Error("nobody cancelled");
          run = { ...run, recovery: decision.recovery };
          recoveries += 1;
        }
        expect(recoveries).toBe(attemptsMax);
      }),
    );
  });
});
