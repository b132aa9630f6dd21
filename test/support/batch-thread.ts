/**
 * One thread's batches with real parts: pump, admission, object SQLite, D1 and the consumer. Only the queue is in the
 * test's hand (wakes lie in `wakes` until delivered, lost or doubled) and so is the clock.
 */
import { createExecutionContext, createMessageBatch, env, getQueueResult } from "cloudflare:test";
import { AdmissionController } from "../../src/agent/subagents/admission-controller.ts";
import type { BatchFile, BatchView, Wake } from "../../src/domain/batch/batch.ts";
import type { BatchItemOutcome } from "../../src/domain/batch/item-settlement.ts";
import type { BatchDraft } from "../../src/domain/batch/validate-batch.ts";
import { err, ok, type Result } from "../../src/domain/shared/result.ts";
import type { BatchSubmitter } from "../../src/durable-objects/batch-intake.ts";
import { BatchPump, type BatchPumpPorts } from "../../src/durable-objects/batch-pump.ts";
import { D1BatchRepository } from "../../src/platform/d1/batch-repository.ts";
import { DurableBatchWindowStore } from "../../src/platform/durable-storage/batch-window-store.ts";
import { DurableGrantStore } from "../../src/platform/durable-storage/grant-store.ts";
import { ensureSchema } from "../../src/platform/durable-storage/object-schema.ts";
import { consumeBatchWakes, type BatchConsumerDeps } from "../../src/queue-consumers/batch-items.ts";
import type { BatchItemRunner, RunnableItem } from "../../src/agent/batches/item-runner.ts";
import { LEASE_MS, NOW } from "./batches.ts";
import { ManualTimers } from "./manual-timers.ts";

export const OWNER = "alice";

export function toMessageBody(wake: Wake): Record<string, unknown> {
  const { batchId, owner, threadId, from, to, grantId, slots, expiresAt } = wake;
  return {
    v: 1,
    batch_id: batchId,
    owner,
    thread_id: threadId,
    from,
    to,
    grant_id: grantId,
    slots,
    expires_at: expiresAt,
  };
}

export const done = (result = "done"): BatchItemOutcome => ({ kind: "completed", result, usage: null, outputs: null });

export function draft(items: number, over: Partial<BatchDraft> = {}): BatchDraft {
  return {
    title: "Numbers",
    subagentType: "bash",
    items: Array.from({ length: items }, (_, place) => ({ key: `k${place}`, prompt: `Count ${place}` })),
    ...over,
  };
}

/** Who submits, and under which key. */
export const by = (submissionKey: string | null): BatchSubmitter => ({ submissionKey, role: "user" });

export interface BatchThreadOptions {
  readonly maxRunning?: number;
  readonly threadId?: string;
  readonly timers?: ManualTimers;
  readonly over?: Partial<BatchPumpPorts>;
}

export class BatchThread {
  readonly repository = new D1BatchRepository(env.DB);
  readonly timers: ManualTimers;
  readonly threadId: string;
  readonly windows: DurableBatchWindowStore;
  readonly admission: AdmissionController;
  readonly pump: BatchPump;
  readonly wakes: Wake[] = [];
  readonly started: string[] = [];
  readonly ended: BatchView[] = [];
  readonly faults: unknown[] = [];
  readonly logged: string[] = [];
  readonly ran: RunnableItem[] = [];
  files: Result<readonly BatchFile[], string> = ok([]);

  /** Called again over the same storage it is the next wake of the same object. */
  constructor(storage: DurableObjectStorage, options: BatchThreadOptions = {}) {
    ensureSchema(storage);
    this.timers = options.timers ?? new ManualTimers();
    this.threadId = options.threadId ?? crypto.randomUUID();
    this.windows = new DurableBatchWindowStore(storage.sql);
    this.admission = this.#admission(storage, options.maxRunning ?? 3);
    this.pump = new BatchPump({ ...this.#ports(), ...options.over });
  }

  now = (): number => NOW + this.timers.now();

  async submit(items: number, over: Partial<BatchDraft> = {}, key: string | null = null): Promise<BatchView> {
    const submitted = await this.pump.submit(draft(items, over), by(key));
    if (!submitted.ok) throw new Error(submitted.error.message);
    return submitted.value.batch;
  }

  /** Takes the oldest wake off the queue. */
  take(): Wake {
    const wake = this.wakes.shift();
    if (wake === undefined) throw new Error("no wake was sent");
    return wake;
  }

  consumer(run: BatchItemRunner["run"], over: Partial<BatchConsumerDeps> = {}): BatchConsumerDeps {
    return {
      rows: this.repository,
      runner: {
        run: (item, setting, signal) => {
          this.ran.push(item);
          return run(item, setting, signal);
        },
      },
      grants: { returnGrant: (grant) => this.pump.returnGrant(grant) },
      timers: this.timers,
      now: this.now,
      newId: () => crypto.randomUUID(),
      leaseMs: LEASE_MS,
      resultCharsMax: 1_000,
      log: (what) => void this.logged.push(what),
      ...over,
    };
  }

  /** The queue delivers these bodies in one batch; gives the ids that were acknowledged. */
  async deliver(bodies: readonly unknown[], deps: BatchConsumerDeps): Promise<string[]> {
    const messages = bodies.map((body, place) => ({
      id: `m${place}`,
      timestamp: new Date(this.now()),
      attempts: 1,
      body,
    }));
    const delivery = createMessageBatch("deputy-batch-wakes", messages);
    await consumeBatchWakes(delivery, deps);
    return (await getQueueResult(delivery, createExecutionContext())).explicitAcks;
  }

  consume(wake: Wake, run: BatchItemRunner["run"] = async () => done()): Promise<string[]> {
    return this.deliver([toMessageBody(wake)], this.consumer(run));
  }

  /** Moves the clock to what is due next and lets the alarm fire. */
  async alarm(): Promise<void> {
    const dueAt = this.pump.nextDueAt();
    if (dueAt === undefined) throw new Error("nothing is due");
    this.timers.advance(Math.max(0, dueAt - this.now()));
    await this.pump.onAlarm(this.now());
  }

  /** Delivers every wake, and fires the alarm when there is none, until the batch has ended. */
  async finish(batchId: string, run: BatchItemRunner["run"] = async () => done()): Promise<BatchView> {
    for (let step = 0; step < 1_000; step += 1) {
      const batch = await this.repository.getBatch(OWNER, batchId);
      if (batch !== undefined && batch.status !== "running" && this.wakes.length === 0) return batch;
      if (this.wakes.length > 0) await this.consume(this.take(), run);
      else await this.alarm();
    }
    throw new Error("the batch did not end");
  }

  #admission(storage: DurableObjectStorage, maxRunning: number): AdmissionController {
    return new AdmissionController({
      config: {
        maxRunning,
        maxQueued: 64,
        policy: "queue",
        queueTimeoutMs: 300_000,
        classWeights: [1, 1],
        grantTtlMs: LEASE_MS,
      },
      grants: new DurableGrantStore(storage.sql),
      now: this.now,
      newId: () => crypto.randomUUID(),
      timers: this.timers,
      onBatchTurn: (grant) => {
        this.pump.onTurn(grant);
      },
    });
  }

  #ports(): BatchPumpPorts {
    return {
      owner: OWNER,
      threadId: this.threadId,
      repository: this.repository,
      windows: this.windows,
      admission: this.admission,
      wakes: { send: async (wake) => void this.wakes.push(wake) },
      limits: {
        maxItems: 5_000,
        defaultLiveItems: 100,
        maxLiveItems: 1_000,
        defaultRunningItems: 3,
        maxRunningItems: 64,
        defaultAttempts: 3,
      },
      enabled: true,
      leaseMs: LEASE_MS,
      resolveSubagent: (type) =>
        type === "bash"
          ? ok({ definition: { name: type }, timeoutSeconds: 1_800 })
          : err(`unknown subagent type '${type}'`),
      readFiles: () => this.files,
      arm: async () => {},
      now: this.now,
      newId: () => crypto.randomUUID(),
      onStart: (batch) => void this.started.push(batch.batchId),
      onEnd: (batch) => void this.ended.push(batch),
      onFault: (fault) => void this.faults.push(fault),
    };
  }
}
