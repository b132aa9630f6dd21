/**
 * A whole batch in workerd with real parts: created over HTTP, pumped by its thread object, claimed, run and settled by
 * the queue consumer, its grants returned to the object. Only the queue is left out (`bench/worker.ts` keeps the wakes),
 * and the items are instant, so what remains is what Deputy itself costs.
 */
import { createMessageBatch, env } from "cloudflare:test";
import { systemTimers } from "../src/agent/subagents/timers.ts";
import type { DeputyConfigInput } from "../src/config.ts";
import { D1BatchRepository } from "../src/platform/d1/batch-repository.ts";
import { DurableThreadDirectory } from "../src/platform/thread-directory.ts";
import { newUuidV7 } from "../src/platform/identifiers.ts";
import type { BatchWake } from "../src/protocol/queue-messages.ts";
import { THREAD_RPC_VERSION } from "../src/protocol/thread-rpc.ts";
import { type BatchConsumerDeps, consumeBatchWakes } from "../src/queue-consumers/batch-items.ts";
import { BenchThread, OWNER, post } from "./bench-thread.ts";
import type { D1Totals } from "./metered-d1.ts";
import { MeteredD1 } from "./metered-d1.ts";
import { desk } from "./worker.ts";

const LEASE_MS = 120_000;

export interface BatchLife {
  /** From the first wake to the end of the batch. */
  readonly seconds: number;
  /** Submit, pump, consumers and the batch's events in the thread's log. */
  readonly d1: D1Totals;
  readonly d1ByKind: Readonly<Record<string, D1Totals>>;
  /** Calls to the thread object: the create, and one for each returned grant. */
  readonly objectRequests: number;
  readonly objectRowsWritten: number;
}

export interface BatchLifeOptions {
  readonly items: number;
  /** `subagent_runtime.max_running` and the batch's own `max_running_items` alike; the defaults when absent. */
  readonly maxRunning?: number;
}

export async function liveBatch({ items, maxRunning }: BatchLifeOptions): Promise<BatchLife> {
  const overrides: DeputyConfigInput =
    maxRunning === undefined ? {} : { subagent_runtime: { max_running: maxRunning } };
  const thread = await BenchThread.create(overrides);
  await thread.inObject((context) => context.meter.reset());
  desk.d1.reset();
  const batchId = await createBatch(thread.threadId, items, maxRunning);
  const from = performance.now();
  const grantsReturned = await consumeAll();
  const seconds = (performance.now() - from) / 1_000;
  // The object answers the last returned grant after its batch ended; its event is flushed with the others.
  await thread.inObject((context) => context.flush.flush());
  await expectCompleted(batchId, items);
  const objectRowsWritten = await thread.inObject((context) => context.meter.totals().rowsWritten);
  const { d1 } = desk;
  return { seconds, d1: d1.totals(), d1ByKind: d1.byKind(), objectRequests: grantsReturned + 1, objectRowsWritten };
}

async function createBatch(threadId: string, items: number, maxRunning: number | undefined): Promise<string> {
  const response = await post(`/threads/${threadId}/batches`, {
    title: "Bench",
    subagent_type: "general-purpose",
    ...(maxRunning === undefined ? {} : { max_running_items: maxRunning }),
    items: Array.from({ length: items }, (_, place) => ({ key: `k${place}`, prompt: `Count ${place}` })),
  });
  const { batch_id } = await response.json<{ batch_id: string }>();
  return batch_id;
}

/** Delivers wakes as they come, side by side, until none is left. Gives how many grants went back. */
async function consumeAll(): Promise<number> {
  let grantsReturned = 0;
  const deps = consumerDeps(() => {
    grantsReturned += 1;
  });
  const running = new Set<Promise<void>>();
  do {
    for (const wake of desk.wakes.splice(0)) {
      const consumed = consumeOne(wake, deps).finally(() => running.delete(consumed));
      running.add(consumed);
    }
    // A wake that a returned grant brings about is sent before the return is answered.
    await Promise.race(running);
  } while (running.size > 0 || desk.wakes.length > 0);
  return grantsReturned;
}

async function consumeOne(wake: BatchWake, deps: BatchConsumerDeps): Promise<void> {
  const message = { id: newUuidV7(), timestamp: new Date(), attempts: 1, body: wake };
  await consumeBatchWakes(createMessageBatch("deputy-batch-wakes", [message]), deps);
}

function consumerDeps(onReturn: () => void): BatchConsumerDeps {
  const threads = new DurableThreadDirectory(env.THREADS);
  return {
    rows: new D1BatchRepository(new MeteredD1(env.DB, desk.d1).database),
    grants: {
      async returnGrant({ owner, threadId, batchId, grantId }) {
        onReturn();
        const address = { v: THREAD_RPC_VERSION, owner, thread_id: threadId, role: "user" } as const;
        await threads.stub(owner, threadId).returnGrant(address, { batch_id: batchId, grant_id: grantId });
      },
    },
    runner: { run: async () => ({ kind: "completed", result: "done", usage: null, outputs: null }) },
    timers: systemTimers,
    now: desk.now,
    newId: newUuidV7,
    leaseMs: LEASE_MS,
    resultCharsMax: 1_000,
    log: (what, details) => {
      throw new Error(`${what}: ${JSON.stringify(details)}`);
    },
  };
}

async function expectCompleted(batchId: string, items: number): Promise<void> {
  const batch = await new D1BatchRepository(env.DB).getBatch(OWNER, batchId);
  if (batch?.status !== "completed" || batch.counts.completed !== items) {
    throw new Error(`the bench batch did not complete: ${JSON.stringify(batch)}`);
  }
}
