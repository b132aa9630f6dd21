import { env, runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { AdmissionController } from "../../../src/agent/subagents/admission-controller.ts";
import { DurableGrantStore, GRANT_SCHEMA } from "../../../src/platform/durable-storage/grant-store.ts";
import { climbSchemaLadder } from "../../../src/platform/durable-storage/schema-ladder.ts";

function inObject<T>(name: string, action: (store: DurableGrantStore) => T): Promise<T> {
  const stub = env.THREADS.get(env.THREADS.idFromName(name));
  return runInDurableObject(stub, (_instance, state) => {
    climbSchemaLadder(state.storage, [GRANT_SCHEMA]);
    return action(new DurableGrantStore(state.storage.sql));
  });
}

test("a grant is there after the object's memory is gone, replaced by its renewal, and deleted once", async () => {
  const rows = await inObject("grant-store", (store) => {
    store.save({ grantId: "g1", batchId: "b", slots: 2, expiresAt: 10 });
    store.save({ grantId: "g2", batchId: "b", slots: 1, expiresAt: 5 });
    store.save({ grantId: "g1", batchId: "b", slots: 2, expiresAt: 20 });
    store.delete("g2");
    store.delete("g2");
    return store.load();
  });
  expect(rows).toEqual([{ grantId: "g1", batchId: "b", slots: 2, expiresAt: 20 }]);
});

test("P1 slots granted to consumers stay taken when the object wakes again, until their grant is returned", async () => {
  const outcome = await inObject("grant-restart", (grants) => {
    const ports = {
      config: {
        maxRunning: 2,
        maxQueued: 8,
        policy: "queue" as const,
        queueTimeoutMs: 1_000,
        classWeights: [1, 1] as const,
        grantTtlMs: 100,
      },
      grants,
      now: () => 0,
      newId: () => "g1",
      timers: { set: () => 0, clear: () => {} },
      onBatchTurn: () => {},
    };
    const before = new AdmissionController(ports).grantBatch("b", 2);
    const woken = new AdmissionController(ports);
    const running = woken.snapshot().running;
    const returned = woken.returnGrant("g1");
    return { before, running, returned, after: woken.snapshot().running, stored: grants.load() };
  });
  const grant = { grantId: "g1", batchId: "b", slots: 2, expiresAt: 100 };
  expect(outcome).toEqual({ before: grant, running: 2, returned: true, after: 0, stored: [] });
});
