/**
 * Carries the outbox to D1: events, and the projections of the thread and of the runs they speak of. One flush at a
 * time; a failed one is retried by the alarm, and by whoever reads the log next (a reader flushes first, so it never
 * misses the tail). Idempotent: the outbox lets go of an event only after D1 has it.
 */
import { runMetadata } from "./run-view.ts";
import { decideThreadStatus } from "../domain/run/run-status.ts";
import type { LocalFailpoint } from "../domain/shared/failpoint.ts";
import { invariant } from "../domain/shared/assert.ts";
import type { Fencing } from "../platform/d1/fence.ts";
import type { D1RunEventLog, RunProjection, ThreadKey, ThreadProjection } from "../platform/d1/run-event-log.ts";
import type { EventOutbox, PendingEvents } from "../platform/durable-storage/event-outbox.ts";
import type { RunRecord, RunStore } from "../platform/durable-storage/run-store.ts";
import type { ThreadRecord, ThreadStore } from "../platform/durable-storage/thread-store.ts";
import type { AlarmSource } from "./object-alarm.ts";
import { settledWithin } from "./settled-within.ts";
import { isLifecycle, RUN_GONE } from "./thread-log.ts";
import { threadMetadata } from "./thread-metadata.ts";

/** How soon a failed flush is tried again, at the soonest. */
const RETRY_MS = 5_000;
/** The longest wait: a D1 that stays broken costs a thread some three hundred alarms a day, not one every few seconds. */
const RETRY_MAX_MS = 300_000;

export interface EventFlushPorts {
  readonly outbox: EventOutbox;
  readonly threads: ThreadStore;
  readonly runs: RunStore;
  readonly log: D1RunEventLog;
  /** Runs a write under this wake's epoch. */
  readonly fencing: Fencing;
  /** The same for the deletion, behind which no other write comes. */
  readonly lastFencing: Fencing;
  readonly now: () => number;
  /** Absent outside of tests. */
  readonly failpoint?: LocalFailpoint | undefined;
  readonly onFault: (fault: unknown) => void;
}

export class EventFlush implements AlarmSource {
  readonly #ports: EventFlushPorts;
  #running: Promise<void> | undefined;
  #again = false;
  #isClosed = false;
  #retryAt: number | undefined;

  constructor(ports: EventFlushPorts) {
    this.#ports = ports;
  }

  /** While a flush is under way its retry is not due: an alarm for it would fire again and again beside it. */
  nextDueAt(): number | undefined {
    return this.isUnderWay ? undefined : this.#retryAt;
  }

  isDue(now: number): boolean {
    const dueAt = this.nextDueAt();
    return dueAt !== undefined && dueAt <= now;
  }

  /** Events are on their way: should the object die now, somebody must look again. */
  get isUnderWay(): boolean {
    return this.#running !== undefined;
  }

  /** Whether what is under way, if anything is, ended in time. */
  async endsWithin(timeoutMs: number): Promise<boolean> {
    if (this.#running === undefined) return true;
    const ended = this.#running.catch(() => undefined);
    await settledWithin(ended, timeoutMs);
    return this.#running === undefined;
  }

  /** Starts a flush nobody waits for; a fault is noted and retried by the alarm. */
  kick(): void {
    this.flush().catch((fault: unknown) => {
      this.#ports.onFault(fault);
    });
  }

  /** A flush that its caller waits for but does not depend on: what is stored is stored, the alarm tries again. */
  async tryFlush(): Promise<void> {
    await this.flush().catch((fault: unknown) => {
      this.#ports.onFault(fault);
    });
  }

  /** Resolves once everything appended before the call is in D1; rejects with D1's fault. */
  async flush(): Promise<void> {
    if (this.#isClosed) return;
    if (this.#running !== undefined) {
      this.#again = true;
      return this.#running;
    }
    this.#running = this.#drain().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** For the deletion: nothing is sent any more; resolves when what is under way has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running?.catch(() => undefined);
  }

  async forgetThread(key: ThreadKey): Promise<void> {
    const now = this.#ports.now();
    await this.#ports.lastFencing(({ epoch }) => this.#ports.log.deleteThread(key, { epoch, now }));
  }

  async #drain(): Promise<void> {
    try {
      do {
        this.#again = false;
        await this.#drainOnce();
      } while (this.#again);
      this.#retryAt = undefined;
    } catch (fault) {
      this.#retryAt = this.#ports.now() + this.#retryWait();
      throw fault;
    }
  }

  /**
   * As long again as the oldest event has waited, so each wait doubles. Read from what is stored: a count of failures would
   * be forgotten by an object that sleeps between its alarms, and a row of its own would be one more write a failure.
   */
  #retryWait(): number {
    const [oldest] = this.#ports.outbox.pending()?.events ?? [];
    const since = oldest === undefined ? (this.#ports.threads.load()?.updatedAt ?? 0) : Date.parse(oldest.created_at);
    return Math.min(Math.max(this.#ports.now() - since, RETRY_MS), RETRY_MAX_MS);
  }

  async #drainOnce(): Promise<void> {
    let pending = this.#ports.outbox.pending();
    while (pending !== undefined && !this.#isClosed) {
      await this.#ports.failpoint?.("flush", pending.events.map((event) => event.event_type).join(" "));
      await this.#send(pending);
      this.#ports.outbox.settle(pending);
      pending = this.#ports.outbox.pending();
    }
  }

  async #send(pending: PendingEvents): Promise<void> {
    const thread = this.#ports.threads.load();
    invariant(thread !== undefined, "events wait on a thread without a row");
    const runIds = new Set(
      pending.events.filter((event) => isLifecycle(event.event_type)).map((event) => event.run_id),
    );
    const runs = [...runIds].map((runId) => this.#ports.runs.find(runId)).filter((run) => run !== undefined);
    const key = { owner: thread.owner, thread_id: thread.threadId };
    const gone = new Set(pending.events.filter((event) => event.event_type === RUN_GONE).map((event) => event.run_id));
    const told = {
      events: pending.events.filter((event) => !gone.has(event.run_id)),
      runs: runs.map(toRunProjection),
      ...(pending.threadChanges > 0 || runs.length > 0 ? { thread: this.#toThreadProjection(thread) } : {}),
    };
    await this.#ports.fencing(({ epoch }) => this.#ports.log.flush(key, { epoch, ...told }));
    for (const runId of gone) await this.#ports.fencing(({ epoch }) => this.#ports.log.deleteRun(key, runId, epoch));
  }

  #toThreadProjection(thread: ThreadRecord): ThreadProjection {
    const newest = this.#ports.runs.newest();
    return {
      created_at: toIso(thread.createdAt),
      updated_at: toIso(Math.max(thread.updatedAt, newest?.updatedAt ?? 0)),
      status: decideThreadStatus(newest && { status: newest.status, waitsForAnswer: newest.interrupts !== null }),
      metadata: threadMetadata(thread, newest),
    };
  }
}

function toRunProjection(run: RunRecord): RunProjection {
  return {
    run_id: run.runId,
    assistant_id: run.command.body.assistant_id,
    status: run.status,
    metadata: runMetadata(run),
    error: run.error,
    created_at: toIso(run.createdAt),
    updated_at: toIso(run.updatedAt),
  };
}

function toIso(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
