import { env } from "cloudflare:test";
import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import type { BatchItemOutcome } from "../../../src/domain/batch/item-settlement.ts";
import type { Wake } from "../../../src/domain/batch/batch.ts";
import { err, ok } from "../../../src/domain/shared/result.ts";
import { by, BatchThread, done, draft, OWNER } from "../../support/batch-thread.ts";
import { LEASE_MS, storedItems, sums } from "../../support/batches.ts";
import { ManualTimers } from "../../support/manual-timers.ts";
import { inFreshObject } from "../../support/object-storage.ts";

function nextWake(storage: DurableObjectStorage, before: BatchThread, maxRunning = 3): BatchThread {
  return new BatchThread(storage, { threadId: before.threadId, timers: before.timers, maxRunning });
}

async function liveRows(batchId: string): Promise<number> {
  const { results } = await env.DB.prepare("SELECT 1 FROM live_batches WHERE batch_id = ?").bind(batchId).all();
  return results.length;
}

/** Claims under a wake and dies: nothing of it will ever be settled. */
function claimAndDie(thread: BatchThread, wake: Wake): Promise<unknown> {
  const now = thread.now();
  return thread.repository.systemClaim({ wake, leaseToken: crypto.randomUUID(), now, leaseExpiresAt: now + LEASE_MS });
}

describe("a batch from submit to end", () => {
  it("R54 B7: runs every item once within its windows, tells start and end once, and leaves nothing behind", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage, { maxRunning: 4 });
      const { batchId } = await thread.submit(25, { maxRunningItems: 3, maxLiveItems: 5 });
      let most = 0;
      const batch = await thread.finish(batchId, async () => {
        most = Math.max(most, (await sums(env.DB, batchId)).leased, thread.admission.snapshot().running);
        return done();
      });
      expect(batch).toMatchObject({ status: "completed", counts: { completed: 25, pending: 0 } });
      expect(most).toBe(3);
      expect(thread.ran.map((item) => item.ordinal).sort((a, b) => a - b)).toEqual(
        Array.from({ length: 25 }, (_, i) => i),
      );
      expect(thread.started).toEqual([batchId]);
      expect(thread.ended).toMatchObject([{ batchId, status: "completed" }]);
      expect(thread.windows.load(batchId)).toBeUndefined();
      expect(thread.pump.nextDueAt()).toBeUndefined();
      expect(thread.admission.snapshot()).toMatchObject({ running: 0, waiting_batches: 0 });
      expect(await liveRows(batchId)).toBe(0);
      expect(thread.faults).toEqual([]);
    }));

  it("R58: a failing item is offered again after a pause until its attempts are spent, and the batch still completes", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(3, { maxAttempts: 3 });
      const batch = await thread.finish(batchId, async (item) =>
        item.ordinal === 1 ? { kind: "failed", error: "no" } : done(),
      );
      expect(batch).toMatchObject({ status: "completed", counts: { completed: 2, failed: 1 } });
      expect(thread.ran.filter((item) => item.ordinal === 1).map((item) => item.attempt)).toEqual([1, 2, 3]);
      expect((await storedItems(env.DB, batchId))[1]).toMatchObject({ status: "failed", attempts: 3 });
    }));

  it("P4 R57: an item deferred again and again keeps its attempts and does not spin", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(1, { maxAttempts: 1 });
      const started = thread.now();
      await thread.finish(batchId, async () =>
        thread.ran.length <= 5 ? { kind: "deferred", reason: "shutdown" } : done(),
      );
      expect((await storedItems(env.DB, batchId))[0]).toMatchObject({ status: "completed", attempts: 0, deferrals: 5 });
      expect(thread.now() - started).toBeGreaterThanOrEqual(15_000);
    }));

  it("two batches of a thread share its slots: neither waits for the other to end", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage, { maxRunning: 3 });
      const first = await thread.submit(12);
      const second = await thread.submit(12);
      const order: string[] = [];
      while (thread.ended.length === 0) {
        await thread.consume(thread.take(), async (item) => {
          order.push(item.batchId);
          return done();
        });
      }
      expect(order.indexOf(second.batchId)).toBe(3);
      expect(new Set(order.slice(0, 6))).toEqual(new Set([first.batchId, second.batchId]));
      await thread.finish(second.batchId);
      await thread.finish(first.batchId);
      expect(thread.ended).toHaveLength(2);
    }));
});

describe("submit", () => {
  it("B9: the same key and body give one batch, at once and later, even after the files are gone", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      thread.files = ok([{ path: "/workspace/a", bytes: new Uint8Array([1, 2]) }]);
      const body = draft(2, { files: ["/workspace/a"] });
      const both = await Promise.all([
        thread.pump.submit(body, by("run:call")),
        thread.pump.submit(body, by("run:call")),
      ]);
      thread.files = err("/workspace/a: no such file");
      const later = await thread.pump.submit(body, by("run:call"));
      const ids = [...both, later].map((taken) => (taken.ok ? taken.value.batch.batchId : taken.error));
      expect(new Set(ids).size).toBe(1);
      expect([...both, later].map((taken) => taken.ok && taken.value.created)).toEqual([true, false, false]);
      expect(await thread.pump.submit(draft(3), by("run:call"))).toMatchObject({
        ok: false,
        error: { reason: "idempotency_conflict" },
      });
      expect(thread.started).toHaveLength(1);
    }));

  it("a refusal names its reason and stores nothing, in the object and in D1", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const rows = async (): Promise<unknown> =>
        (await env.DB.prepare("SELECT count(*) AS n FROM batches WHERE thread_id = ?").bind(thread.threadId).all())
          .results;
      const twice = draft(1, {
        items: [
          { key: "a", prompt: "p" },
          { key: "a", prompt: "q" },
        ],
      });
      expect(await thread.pump.submit(twice, by("k1"))).toMatchObject({ ok: false, error: { reason: "batch_limit" } });
      expect(await thread.pump.submit(draft(1, { subagentType: "none" }), by("k2"))).toMatchObject({
        ok: false,
        error: { reason: "unknown_subagent_type" },
      });
      thread.files = err("/workspace/x: no such file");
      expect(await thread.pump.submit(draft(1, { files: ["/workspace/x"] }), by("k3"))).toMatchObject({
        ok: false,
        error: { reason: "file_refused", message: "/workspace/x: no such file" },
      });
      thread.files = ok([{ path: "/workspace/x", bytes: new Uint8Array(8 * 1_024 * 1_024 + 1) }]);
      expect(await thread.pump.submit(draft(1, { files: ["/workspace/x"] }), by("k4"))).toMatchObject({
        ok: false,
        error: { reason: "file_refused" },
      });
      expect(await rows()).toEqual([{ n: 0 }]);
      expect(thread.pump.nextDueAt()).toBeUndefined();
    }));

  it("P1: an object that died while loading removes the load; one that died right after it starts the batch", () =>
    inFreshObject(async (storage) => {
      const crashed = new BatchThread(storage, {
        over: { arm: () => Promise.reject(new Error("object died")) },
      });
      await expect(crashed.pump.submit(draft(2), by("k"))).rejects.toThrow("object died");
      expect(crashed.windows.due(Infinity)).toHaveLength(1);
      const woken = nextWake(storage, crashed);
      await woken.alarm();
      expect(woken.pump.nextDueAt()).toBeUndefined();

      const before = new BatchThread(storage, {
        threadId: woken.threadId,
        timers: woken.timers,
        over: {
          onStart: () => {
            throw new Error("object died");
          },
        },
      });
      await expect(before.pump.submit(draft(2), by("k"))).rejects.toThrow("object died");
      const [batchId] = before.windows.running();
      storage.sql.exec(
        "UPDATE batch_windows SET phase = 'submitting', state = replace(state, '\"running\"', '\"submitting\"')",
      );
      const after = nextWake(storage, before);
      await after.alarm();
      expect(after.started).toEqual([batchId]);
      expect(await after.finish(batchId!)).toMatchObject({ status: "completed", counts: { completed: 2 } });
    }));
});

describe("wakes and grants that go wrong", () => {
  it("B6: a lost wake holds its slots for one lease, is sent again and costs no attempt", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(3);
      const lost = thread.take();
      await thread.alarm();
      expect(thread.now() - (lost.expiresAt - LEASE_MS)).toBe(LEASE_MS);
      const again = thread.take();
      expect(again).toMatchObject({ from: lost.from, to: lost.to });
      expect(again.grantId).not.toBe(lost.grantId);
      await thread.consume(lost);
      expect(thread.ran).toEqual([]);
      await thread.consume(again);
      expect(await sums(env.DB, batchId)).toMatchObject({ completed: 3 });
      expect((await storedItems(env.DB, batchId)).map((item) => item.attempts)).toEqual([0, 0, 0]);
    }));

  it("B3 R58: a consumer that died is found at its lease's end, its items spend one attempt and run again", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(3);
      await claimAndDie(thread, thread.take());
      await thread.alarm();
      const batch = await thread.finish(batchId);
      expect(batch).toMatchObject({ counts: { completed: 3 } });
      expect((await storedItems(env.DB, batchId)).map((item) => item.attempts)).toEqual([1, 1, 1]);
      expect(thread.admission.snapshot().running).toBe(0);
    }));

  it("B1: a grant whose lease is renewed keeps its slots past its own expiry; nothing is offered twice", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(3);
      const slow = Promise.withResolvers<BatchItemOutcome>();
      const consuming = thread.consume(thread.take(), () => slow.promise);
      await vi.waitFor(() => expect(thread.ran).toHaveLength(3));
      for (let beat = 1; beat <= 4; beat += 1) {
        thread.timers.advance(LEASE_MS / 3);
        const renewed = thread.now() + LEASE_MS;
        await vi.waitFor(async () => {
          const { results } = await env.DB.prepare("SELECT expires_at FROM leases WHERE batch_id = ?")
            .bind(batchId)
            .all();
          expect(results).toEqual([{ expires_at: renewed }]);
        });
        await thread.pump.onAlarm(thread.now());
        expect(thread.admission.snapshot().running).toBe(3);
        expect(thread.wakes).toEqual([]);
      }
      slow.resolve(done());
      await consuming;
      expect(thread.ended).toMatchObject([{ counts: { completed: 3 } }]);
      expect((await storedItems(env.DB, batchId)).map((item) => item.attempts)).toEqual([0, 0, 0]);
    }));

  it("P1: an object that died with a wake out goes on from storage, and the old consumer's return still counts", () =>
    inFreshObject(async (storage) => {
      const before = new BatchThread(storage);
      const { batchId } = await before.submit(6);
      const wake = before.take();
      const after = nextWake(storage, before);
      expect(after.admission.snapshot().running).toBe(3);
      await after.consume(wake);
      expect(await after.finish(batchId)).toMatchObject({ status: "completed", counts: { completed: 6 } });
      expect(after.started).toEqual([]);
      expect(after.ended).toHaveLength(1);
    }));

  it("a queue that refuses a wake gets it again later, and the slots are free meanwhile", () =>
    inFreshObject(async (storage) => {
      let refusals = 2;
      const sent: Wake[] = [];
      const thread = new BatchThread(storage, {
        over: {
          wakes: {
            send: async (wake) => {
              if (refusals-- > 0) throw new Error("Too Many Requests");
              sent.push(wake);
            },
          },
        },
      });
      const { batchId } = await thread.submit(2);
      expect(thread.admission.snapshot().running).toBe(0);
      while (sent.length === 0) await thread.alarm();
      await thread.consume(sent[0]!);
      expect(await sums(env.DB, batchId)).toMatchObject({ completed: 2 });
      expect(thread.faults).toHaveLength(2);
    }));

  it("P8: while D1 fails the sweep pauses and asks again, it neither spins nor gives up", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(1);
      thread.take();
      const broken = vi.spyOn(thread.repository, "systemInspect").mockRejectedValue(new Error("D1 overloaded"));
      await thread.alarm();
      const failedAt = thread.now();
      expect(thread.pump.nextDueAt()).toBeGreaterThan(failedAt);
      await thread.alarm();
      broken.mockRestore();
      expect(await thread.finish(batchId)).toMatchObject({ status: "completed" });
      expect(thread.faults).toHaveLength(2);
    }));
});

describe("cancel and poke", () => {
  it("B4 R59: a cancel ends the batch at once, once; slots come back when their consumers do, or at expiry", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage, { maxRunning: 4 });
      const { batchId } = await thread.submit(20, { maxRunningItems: 2 });
      const other = await thread.submit(20, { maxRunningItems: 4 });
      const running = thread.take();
      await claimAndDie(thread, running);
      const cancelled = await thread.pump.cancel(batchId);
      expect(cancelled).toMatchObject({ status: "cancelled", counts: { pending: 0, leased: 0, cancelled: 20 } });
      expect(await thread.pump.cancel(batchId)).toMatchObject({ status: "cancelled" });
      expect(thread.ended.map((batch) => batch.batchId)).toEqual([batchId]);
      expect(thread.windows.load(batchId)?.phase).toBe("ended");
      await thread.pump.returnGrant(running);
      expect(thread.windows.load(batchId)).toBeUndefined();
      expect(await thread.finish(other.batchId)).toMatchObject({ counts: { completed: 20 } });
      expect(await liveRows(batchId)).toBe(0);
    }));

  it("B4: the slots of a cancelled batch whose consumer never answers come back at the lease's end", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(3);
      await claimAndDie(thread, thread.take());
      await thread.pump.cancel(batchId);
      expect(thread.admission.snapshot().running).toBe(3);
      await thread.alarm();
      expect(thread.admission.snapshot().running).toBe(0);
      expect(thread.pump.nextDueAt()).toBeUndefined();
    }));

  it("P1: slots granted to a batch whose rows are gone from D1 come back at the grant's end, also in the next wake", () =>
    inFreshObject(async (storage) => {
      const before = new BatchThread(storage);
      const { batchId } = await before.submit(3);
      await env.DB.batch(
        ["batch_items", "batches"].map((table) =>
          env.DB.prepare(`DELETE FROM ${table} WHERE batch_id = ?`).bind(batchId),
        ),
      );
      const woken = nextWake(storage, before);
      expect(woken.admission.snapshot().running).toBe(3);
      await woken.alarm();
      expect(woken.admission.snapshot().running).toBe(0);
      expect(storage.sql.exec("SELECT * FROM batch_grants").toArray()).toEqual([]);
      expect(woken.faults).toEqual([new Error(`batch ${batchId} is gone from D1`)]);
      expect(woken.pump.nextDueAt()).toBeUndefined();
    }));

  it("P1: before its thread is deleted every batch of it is cancelled", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const ids = [await thread.submit(5), await thread.submit(5)].map((batch) => batch.batchId);
      await thread.pump.cancelAll();
      for (const id of ids) expect(await thread.pump.status(id)).toMatchObject({ status: "cancelled" });
      expect(thread.ended).toHaveLength(2);
    }));

  it("P1: a submit still under way when its thread is deleted leaves no batch running", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const submitting = thread.submit(5, {}, "key");
      await thread.pump.cancelAll();
      const { batchId } = await submitting;
      expect(await thread.pump.status(batchId)).toMatchObject({ status: "cancelled" });
      expect(await liveRows(batchId)).toBe(0);
    }));

  it("B9: the keys of a deleted thread do not answer for a later thread of its id", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(2, {}, "key");
      await thread.pump.cancelAll();
      const later = await thread.submit(2, {}, "key");
      expect(later.batchId).not.toBe(batchId);
      expect(await thread.finish(later.batchId)).toMatchObject({ counts: { completed: 2 } });
    }));

  it("P7: another thread's or owner's batch is not there to be seen or cancelled", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(2);
      const elsewhere = new BatchThread(storage, { timers: new ManualTimers() });
      expect(await elsewhere.pump.status(batchId)).toBeUndefined();
      expect(await elsewhere.pump.cancel(batchId)).toBeUndefined();
      expect(await thread.pump.status(batchId)).toMatchObject({ status: "running" });
    }));

  it("P1: a poke adopts rows the object has no window of, and acknowledges what has ended", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(5);
      await thread.consume(thread.take());
      storage.sql.exec("DELETE FROM batch_windows");
      storage.sql.exec("DELETE FROM batch_grants");
      const woken = nextWake(storage, thread);
      await woken.pump.poke([batchId]);
      expect(await woken.finish(batchId)).toMatchObject({ status: "completed", counts: { completed: 5 } });
      const { batchId: orphan } = await woken.submit(1);
      await woken.repository.cancel(OWNER, orphan, woken.now());
      storage.sql.exec("DELETE FROM batch_windows");
      await woken.pump.poke([orphan]);
      expect(await liveRows(orphan)).toBe(0);
    }));

  it("P1 B3: a poke also frees items that a dead consumer held under a grant nobody remembers", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(6);
      await thread.consume(thread.take());
      await claimAndDie(thread, thread.take());
      storage.sql.exec("DELETE FROM batch_windows");
      storage.sql.exec("DELETE FROM batch_grants");
      const woken = nextWake(storage, thread);
      await woken.pump.poke([batchId]);
      expect(woken.wakes).toEqual([]);
      woken.timers.advance(LEASE_MS);
      await woken.pump.poke([batchId]);
      expect(await woken.finish(batchId)).toMatchObject({ status: "completed", counts: { completed: 6 } });
      expect((await storedItems(env.DB, batchId)).map((item) => item.attempts)).toEqual([0, 0, 0, 1, 1, 1]);
    }));
});

describe("everything at once", () => {
  it("P1 B5 B7 B8: lost, doubled and late wakes, dying consumers and objects: every item ends exactly once", async () => {
    const fates = fc.array(fc.constantFrom("run", "lose", "double", "die", "restart", "fail", "defer"), {
      minLength: 12,
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(fates, (steps) => inFreshObject((storage) => surviveAll(storage, steps))),
      { numRuns: 6 },
    );
  }, 60_000);
});

type Fate = "run" | "lose" | "double" | "die" | "restart" | "fail" | "defer";

async function surviveAll(storage: DurableObjectStorage, fates: readonly Fate[]): Promise<void> {
  let thread = new BatchThread(storage, { maxRunning: 4 });
  const { batchId } = await thread.submit(12, { maxRunningItems: 3, maxLiveItems: 6, maxAttempts: 10 });
  const queue: Wake[] = thread.wakes.splice(0);
  const terminal = new Map<number, string>();
  for (const fate of fates) {
    if (thread.windows.load(batchId) === undefined) break;
    const wake = queue.shift();
    if (fate === "restart") thread = nextWake(storage, thread, 4);
    if (fate === "lose" || wake === undefined) await thread.alarm();
    else if (fate === "die") await claimAndDie(thread, wake);
    else {
      const outcome: BatchItemOutcome =
        fate === "fail"
          ? { kind: "failed", error: "x" }
          : fate === "defer"
            ? { kind: "deferred", reason: "x" }
            : done();
      await thread.consume(wake, async () => outcome);
      if (fate === "double") await thread.consume(wake);
    }
    queue.push(...thread.wakes.splice(0));
    await expectSound(thread, batchId, terminal);
  }
  thread.wakes.push(...queue);
  const batch = await thread.finish(batchId);
  expect(batch).toMatchObject({ status: "completed", counts: { completed: 12 } });
  await expectSound(thread, batchId, terminal);
}

/** B5: what was terminal is as it was. B7: the windows hold. B8: counters equal the sums. */
async function expectSound(thread: BatchThread, batchId: string, terminal: Map<number, string>): Promise<void> {
  const items = await storedItems(env.DB, batchId);
  for (const item of items) {
    const seen = JSON.stringify(item);
    if (terminal.has(item.ordinal)) expect(seen).toBe(terminal.get(item.ordinal));
    if (item.status === "completed") terminal.set(item.ordinal, seen);
  }
  const counts = await sums(env.DB, batchId);
  expect((await thread.repository.getBatch(OWNER, batchId))?.counts).toEqual(counts);
  expect(counts.leased).toBeLessThanOrEqual(3);
  const window = thread.windows.load(batchId)?.window;
  const offered = window === undefined ? [] : items.slice(0, window.next);
  expect(offered.filter((item) => item.status === "pending" || item.status === "leased").length).toBeLessThanOrEqual(6);
  expect(thread.admission.snapshot().running).toBeLessThanOrEqual(4);
}
