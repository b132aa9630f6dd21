import { describe, expect, test } from "vitest";
import type { AdmissionConfig, BatchGrant } from "../../../src/domain/admission/admission-state.ts";
import { AdmissionController } from "../../../src/agent/subagents/admission-controller.ts";
import { countedIds } from "../../support/agent-fixture.ts";
import { memoryGrants } from "../../support/delegation-fixture.ts";
import { ManualTimers } from "../../support/manual-timers.ts";

function controller(config: Partial<AdmissionConfig> = {}, grants = memoryGrants()) {
  const timers = new ManualTimers();
  const turns: BatchGrant[] = [];
  const admission = new AdmissionController({
    config: {
      maxRunning: 1,
      maxQueued: 64,
      policy: "queue",
      queueTimeoutMs: 1_000,
      classWeights: [1, 1],
      grantTtlMs: 500,
      ...config,
    },
    grants,
    now: () => timers.now(),
    newId: countedIds("grant"),
    timers,
    onBatchTurn: (grant) => void turns.push(grant),
  });
  const acquire = (taskId: string, signal = new AbortController().signal) => admission.acquire({ taskId, signal });
  return { admission, timers, turns, grants, acquire };
}

async function slotOf(work: ReturnType<AdmissionController["acquire"]>) {
  const outcome = await work;
  if (!outcome.ok) throw new Error(outcome.error);
  return outcome.value;
}

describe("waiting for a slot", () => {
  test("R37 releasing twice frees one slot", async () => {
    const { admission, acquire } = controller();
    const first = await slotOf(acquire("a"));
    const second = acquire("b");
    const third = acquire("c");
    first.release();
    first.release();
    (await slotOf(second)).release();
    await slotOf(third);
    expect(admission.snapshot()).toMatchObject({ running: 1, queued: 0 });
  });

  test("R37 a cancelled waiter leaves at once and its timer with it", async () => {
    const { admission, timers, acquire } = controller();
    const first = await slotOf(acquire("a"));
    const abort = new AbortController();
    const waiting = acquire("b", abort.signal);
    expect(timers.pending()).toBe(1);
    abort.abort();
    expect(await waiting).toEqual({ ok: false, error: "cancelled" });
    expect(admission.snapshot().queued).toBe(0);
    expect(timers.pending()).toBe(0);
    first.release();
    expect(admission.snapshot().running).toBe(0);
  });

  test("R37 a grant that meets a waiter cancelled in the same turn is handed on", async () => {
    const { admission, acquire } = controller();
    const first = await slotOf(acquire("a"));
    const abort = new AbortController();
    const second = acquire("b", abort.signal);
    const third = acquire("c");
    first.release();
    abort.abort();
    expect(await second).toEqual({ ok: false, error: "cancelled" });
    await slotOf(third);
    expect(admission.snapshot()).toMatchObject({ running: 1, queued: 0 });
  });

  test("R57 each waiter has its own deadline; a slot freed afterwards goes past those who gave up", async () => {
    const { timers, acquire } = controller();
    const first = await slotOf(acquire("a"));
    const second = acquire("b");
    timers.advance(600);
    const third = acquire("c");
    timers.advance(400);
    expect(await second).toEqual({ ok: false, error: "admission_timeout" });
    first.release();
    (await slotOf(third)).release();
    expect(timers.pending()).toBe(0);
  });

  test("a signal that has fired takes no slot", async () => {
    const { admission, acquire } = controller();
    expect(await acquire("a", AbortSignal.abort())).toEqual({ ok: false, error: "cancelled" });
    expect(admission.snapshot().running).toBe(0);
  });
});

describe("grants", () => {
  test("a grant is stored before anyone hears of it, and deleted when it is returned", () => {
    const { admission, grants } = controller({ maxRunning: 3 });
    const grant = admission.grantBatch("b", 2);
    expect(grant).toEqual({ grantId: "grant-1", batchId: "b", slots: 2, expiresAt: 500 });
    expect([...grants.rows.values()]).toEqual([grant]);
    expect(admission.returnGrant("grant-1")).toBe(true);
    expect(admission.returnGrant("grant-1")).toBe(false);
    expect(grants.rows.size).toBe(0);
  });

  test("a batch without a free slot is called back at its turn with a stored grant", async () => {
    const { admission, turns, grants, acquire } = controller();
    const slot = await slotOf(acquire("a"));
    expect(admission.grantBatch("b", 4)).toBeUndefined();
    slot.release();
    expect(turns).toEqual([{ grantId: "grant-1", batchId: "b", slots: 1, expiresAt: 500 }]);
    expect([...grants.rows.values()]).toEqual(turns);
  });

  test("a renewed lease extends the stored grant", () => {
    const { admission, grants } = controller({ maxRunning: 2 });
    admission.grantBatch("b", 1);
    expect(admission.extendGrant("grant-1", 900)).toBe(true);
    expect(grants.rows.get("grant-1")?.expiresAt).toBe(900);
    admission.returnGrant("grant-1");
    expect(admission.extendGrant("grant-1", 1_200)).toBe(false);
    expect(grants.rows.size).toBe(0);
  });

  test("a lowered max_running drains: grants of the last wake are kept, nothing is added", async () => {
    const grants = memoryGrants();
    controller({ maxRunning: 4 }, grants).admission.grantBatch("b", 4);
    const { admission, acquire } = controller({ maxRunning: 2 }, grants);
    const waiting = acquire("a");
    expect(admission.snapshot()).toMatchObject({ running: 4, queued: 1 });
    admission.returnGrant("grant-1");
    await slotOf(waiting);
    expect(admission.snapshot().running).toBe(1);
  });
});
