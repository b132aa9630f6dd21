import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import { D1BatchRepository } from "../../../src/platform/d1/batch-repository.ts";
import { STALE_AFTER_MS, sweepBatches } from "../../../src/queue-consumers/batch-sweep.ts";
import { BatchThread, OWNER } from "../../support/batch-thread.ts";
import { NOW, submission } from "../../support/batches.ts";
import { inFreshObject } from "../../support/object-storage.ts";

it("B6: the cron pokes the thread of a batch that has not moved, and the batch then ends", () =>
  inFreshObject(async (storage) => {
    const thread = new BatchThread(storage);
    const { batchId } = await thread.submit(3);
    thread.take();
    storage.sql.exec("UPDATE batch_windows SET due_at = NULL");
    const poked: string[] = [];
    const sweep = (now: number): Promise<number> =>
      sweepBatches({
        repository: thread.repository,
        poke: async ({ owner, threadId, batchIds }) => {
          if (threadId !== thread.threadId) return "poked";
          expect(owner).toBe(OWNER);
          poked.push(...batchIds);
          await thread.pump.poke(batchIds);
          return "poked";
        },
        now: () => now,
        log: () => {},
      });
    await sweep(NOW + STALE_AFTER_MS);
    expect(poked).toEqual([]);
    thread.timers.advance(STALE_AFTER_MS + 1);
    await sweep(thread.now());
    expect(poked).toEqual([batchId]);
    expect(await thread.finish(batchId)).toMatchObject({ status: "completed" });
    const before = poked.length;
    await sweep(thread.now() + STALE_AFTER_MS * 2);
    expect(poked).toHaveLength(before);
  }));

it("P8: the cron reads in pages, groups by thread, and one thread that fails hurts no other", async () => {
  const repository = new D1BatchRepository(env.DB);
  const mark = crypto.randomUUID();
  const ids: string[] = [];
  for (let place = 0; place < 105; place += 1) {
    const submitted = await repository.submit(submission({ threadId: `${mark}-${place % 2}`, now: 1_000 }));
    if (submitted.ok) ids.push(submitted.value.batch.batchId);
  }
  const poked: string[] = [];
  const logged: unknown[] = [];
  await sweepBatches({
    repository,
    poke: async ({ threadId, batchIds }) => {
      if (threadId === `${mark}-0`) throw new Error("object is away");
      if (threadId === `${mark}-1`) poked.push(...batchIds);
      return "poked";
    },
    now: () => 1_001 + STALE_AFTER_MS,
    log: (_what, details) => void (details["thread_id"] === `${mark}-0` && logged.push(details)),
  });
  expect(poked.sort()).toEqual(ids.filter((_, place) => place % 2 === 1).sort());
  expect(logged.length).toBeGreaterThanOrEqual(1);
  for (const id of ids) await repository.systemForget(id);
});

it("P1: a batch whose thread was deleted is cancelled by the cron instead of running for ever", async () => {
  const repository = new D1BatchRepository(env.DB);
  const threadId = crypto.randomUUID();
  const submitted = await repository.submit(submission({ threadId, now: 1_000 }));
  if (!submitted.ok) throw new Error("refused");
  const { batchId } = submitted.value.batch;
  const sweep = async (): Promise<string[]> => {
    const asked: string[] = [];
    await sweepBatches({
      repository,
      poke: async (thread) => {
        if (thread.threadId !== threadId) return "poked";
        asked.push(...thread.batchIds);
        return "no_thread";
      },
      now: () => 1_001 + STALE_AFTER_MS,
      log: () => {},
    });
    return asked;
  };
  expect(await sweep()).toEqual([batchId]);
  expect(await repository.getBatch("alice", batchId)).toMatchObject({ status: "cancelled", counts: { cancelled: 20 } });
  expect(await sweep()).toEqual([]);
});
