import { createExecutionContext, createMessageBatch, env, getQueueResult } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import type { BatchItemOutcome } from "../../../src/domain/batch/item-settlement.ts";
import type { D1BatchRepository } from "../../../src/platform/d1/batch-repository.ts";
import { consumeDeadLetters } from "../../../src/queue-consumers/dead-letters.ts";
import { SETTLE_LINGER_MS, STOP_GRACE_MS } from "../../../src/agent/batches/item-group.ts";
import { BatchThread, done, OWNER, toMessageBody } from "../../support/batch-thread.ts";
import { LEASE_MS, NOW, storedItems, sums, wake } from "../../support/batches.ts";
import { inFreshObject } from "../../support/object-storage.ts";

/** A child that runs until it is told to stop, then obeys. */
const untilStopped = (signal: AbortSignal): Promise<BatchItemOutcome> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve({ kind: "aborted" }), { once: true }));

describe("consumeBatchWakes", () => {
  it("R54 R205: claims, runs with key and warning before the prompt, settles, returns the grant and acks", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(3);
      expect(thread.admission.snapshot().running).toBe(3);
      const acked = await thread.consume(thread.take(), async (item, setting) => {
        expect(setting).toMatchObject({ subagentType: "bash", definition: { name: "bash" }, timeoutMs: 780_000 });
        return done(`did ${item.key}`);
      });
      expect(acked).toEqual(["m0"]);
      expect(thread.ran.map(({ key, attempt }) => [key, attempt])).toEqual([
        ["k0", 1],
        ["k1", 1],
        ["k2", 1],
      ]);
      expect(thread.ran[1]?.prompt).toMatch(/^Batch item key: k1\n[\s\S]*more than once[\s\S]*\nCount 1$/);
      expect((await storedItems(env.DB, batchId)).map((item) => item.result)).toEqual(["did k0", "did k1", "did k2"]);
      expect(thread.admission.snapshot().running).toBe(0);
    }));

  it("B6: a wake delivered twice at once runs each item once and returns the grant once", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      await thread.submit(3);
      const body = toMessageBody(thread.take());
      let returned = 0;
      const deps = thread.consumer(async () => done());
      const grants = { returnGrant: async () => void (returned += 1) };
      expect(await thread.deliver([body, body], { ...deps, grants })).toEqual(["m0", "m1"]);
      expect(thread.ran).toHaveLength(3);
      expect(returned).toBe(1);
    }));

  it("B1: an expired wake does nothing, not even return its grant", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      await thread.submit(3);
      const sent = thread.take();
      thread.timers.advance(LEASE_MS);
      await thread.consume(sent);
      expect(thread.ran).toEqual([]);
      expect(thread.admission.snapshot().running).toBe(3);
    }));

  it("P8: a message that cannot be read, and a claim that fails, are acked alone and hurt no other", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(2);
      const sent = thread.take();
      const bodies = [{ v: 9 }, toMessageBody({ ...sent, batchId: "broken" }), toMessageBody(sent)];
      const rows = failingOn(thread.repository, "systemClaim", (request) => request.wake.batchId === "broken");
      expect(await thread.deliver(bodies, { ...thread.consumer(async () => done()), rows })).toEqual([
        "m0",
        "m1",
        "m2",
      ]);
      expect(thread.logged).toEqual(expect.arrayContaining(["unreadable batch wake", "batch claim or run failed"]));
      expect(await sums(env.DB, batchId)).toMatchObject({ completed: 2 });
    }));

  it("B3 R57 R58: a throw is a failed attempt, a deferral is none, a long result is cut visibly", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(3);
      await thread.consume(thread.take(), async (item) => {
        if (item.ordinal === 0) throw new Error("no model");
        if (item.ordinal === 1) return { kind: "deferred", reason: "admission_rejected" };
        return done("y".repeat(5_000));
      });
      const items = await storedItems(env.DB, batchId);
      expect(items[0]).toMatchObject({ status: "pending", attempts: 1, deferrals: 0, error: "Error: no model" });
      expect(items[1]).toMatchObject({ status: "pending", attempts: 0, deferrals: 1 });
      expect(items[2]?.result).toHaveLength(1_000);
      expect(items[2]?.result).toMatch(/\[cut: the full text has 5000 characters, the limit is 1000\]$/);
    }));

  it("R52: an item past its budget is stopped and fails; one that ignores the stop is left behind", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(2, { timeoutSeconds: 30 });
      const consuming = thread.consume(thread.take(), (item, _setting, signal) =>
        item.ordinal === 0 ? untilStopped(signal) : new Promise(() => {}),
      );
      await vi.waitFor(() => expect(thread.ran).toHaveLength(2));
      thread.timers.advance(30_000);
      thread.timers.advance(STOP_GRACE_MS);
      await consuming;
      const items = await storedItems(env.DB, batchId);
      expect(items.map((item) => item.error)).toEqual(Array(2).fill("timed_out: no result after 30 s"));
      expect(thread.admission.snapshot().running).toBe(0);
    }));

  it("P2: what finished is settled while a slow neighbour still runs", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(3);
      const slow = Promise.withResolvers<BatchItemOutcome>();
      const consuming = thread.consume(thread.take(), async (item) => (item.ordinal === 2 ? slow.promise : done()));
      await vi.waitFor(() => {
        thread.timers.advance(SETTLE_LINGER_MS);
        return sums(env.DB, batchId).then((counts) => expect(counts).toMatchObject({ completed: 2, leased: 1 }));
      });
      slow.resolve(done());
      await consuming;
      expect(await sums(env.DB, batchId)).toMatchObject({ completed: 3 });
    }));

  it("B4 R59: a cancel reaches running children at the next heartbeat, and their late results change nothing", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(3);
      const reasons: unknown[] = [];
      const consuming = thread.consume(thread.take(), async (item, _setting, signal) => {
        if (item.ordinal === 0) return done();
        await untilStopped(signal);
        reasons.push(signal.reason);
        return done("too late");
      });
      await vi.waitFor(() => expect(thread.ran).toHaveLength(3));
      const cancelled = await thread.pump.cancel(batchId);
      expect(cancelled).toMatchObject({ status: "cancelled", counts: { pending: 0, leased: 0 } });
      expect(thread.admission.snapshot().running).toBe(3);
      const before = await storedItems(env.DB, batchId);
      thread.timers.advance(LEASE_MS / 3);
      await consuming;
      expect(reasons).toEqual(["cancelled", "cancelled"]);
      expect(await storedItems(env.DB, batchId)).toEqual(before);
      expect(thread.admission.snapshot().running).toBe(0);
    }));

  it("B1 B2: a consumer whose lease was swept stops and its writes are fenced", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(1);
      const sent = thread.take();
      const consuming = thread.consume(sent, async (_item, _setting, signal) => {
        await untilStopped(signal);
        return done("from the dead");
      });
      await vi.waitFor(() => expect(thread.ran).toHaveLength(1));
      await env.DB.prepare("UPDATE leases SET expires_at = ?1 WHERE batch_id = ?2").bind(NOW, batchId).run();
      expect(await thread.repository.systemExpire(batchId, sent, NOW)).toBe(1);
      thread.timers.advance(LEASE_MS / 3);
      await consuming;
      expect((await storedItems(env.DB, batchId))[0]).toMatchObject({ status: "pending", attempts: 1, result: null });
    }));

  it("B1: when no heartbeat gets through, the items stop before their lease is over for anyone else", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      await thread.submit(1);
      let beats = 0;
      const rows = failingOn(thread.repository, "systemHeartbeat", () => (beats += 1) > 0);
      const reasons: unknown[] = [];
      const deps = thread.consumer(async (_item, _setting, signal) => {
        const outcome = await untilStopped(signal);
        reasons.push(signal.reason);
        return outcome;
      });
      const consuming = thread.deliver([toMessageBody(thread.take())], { ...deps, rows });
      await vi.waitFor(() => expect(thread.ran).toHaveLength(1));
      thread.timers.advance(LEASE_MS / 3);
      await vi.waitFor(() => expect(beats).toBe(1));
      thread.timers.advance(LEASE_MS - LEASE_MS / 3 - 1);
      expect(reasons).toEqual([]);
      thread.timers.advance(1);
      await consuming;
      expect(reasons).toEqual(["lost"]);
    }));

  it("P8: a settle that D1 refuses for a moment is tried again under the same lease", () =>
    inFreshObject(async (storage) => {
      const thread = new BatchThread(storage);
      const { batchId } = await thread.submit(2);
      let tries = 0;
      const rows = failingOn(thread.repository, "systemSettle", () => (tries += 1) <= 2);
      const consuming = thread.deliver([toMessageBody(thread.take())], {
        ...thread.consumer(async () => done()),
        rows,
      });
      await vi.waitFor(() => {
        thread.timers.advance(2_000);
        expect(tries).toBe(3);
      });
      await consuming;
      expect(await sums(env.DB, batchId)).toMatchObject({ completed: 2 });
    }));
});

describe("consumeDeadLetters", () => {
  it("B6: a dead wake is logged and acked, and its grant goes back at once", async () => {
    const dead = wake("b1");
    const returned: unknown[] = [];
    const logged: unknown[] = [];
    const messages = [toMessageBody(dead), "garbage", toMessageBody({ ...dead, grantId: "bad" })].map(
      (body, place) => ({
        id: `m${place}`,
        timestamp: new Date(NOW),
        attempts: 6,
        body,
      }),
    );
    const delivery = createMessageBatch("deputy-batch-dead-letters", messages);
    await consumeDeadLetters(delivery, {
      grants: {
        returnGrant: async (grant) => {
          if (grant.grantId === "bad") throw new Error("object is away");
          returned.push(grant);
        },
      },
      log: (what, details) => void logged.push([what, details["batch_id"]]),
    });
    const result = await getQueueResult(delivery, createExecutionContext());
    expect(result.explicitAcks).toEqual(["m0", "m1", "m2"]);
    expect(returned).toEqual([{ owner: OWNER, threadId: "t1", batchId: "b1", grantId: dead.grantId }]);
    expect(logged).toHaveLength(4);
  });
});

type Rows = Pick<D1BatchRepository, "systemClaim" | "systemHeartbeat" | "systemSettle" | "systemLoadFiles">;

/** The real rows, with one method that throws as a database in trouble does while `fails` says so. */
function failingOn<K extends "systemClaim" | "systemHeartbeat" | "systemSettle">(
  rows: D1BatchRepository,
  method: K,
  fails: (first: Parameters<Rows[K]>[0]) => boolean,
): Rows {
  return new Proxy<Rows>(rows, {
    get(_rows, name) {
      const inner = (rows as unknown as Record<string | symbol, (...args: unknown[]) => Promise<unknown>>)[name];
      return async (...args: unknown[]) => {
        if (name === method && fails(args[0] as Parameters<Rows[K]>[0])) {
          throw new Error("D1_ERROR: Network connection lost.");
        }
        return inner?.apply(rows, args);
      };
    },
  });
}
