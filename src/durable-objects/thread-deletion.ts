/**
 * Deleting the thread: its runs, its batches, its rows in D1, its object. Owns the order, and that a deletion which dies
 * is finished: the wish is stored first, and whoever wakes the object next, a client or the alarm, goes on with it.
 *
 * - From the stored wish on the thread is gone for everybody; there is no way back.
 * - Runs end before batches, since a run could still submit one. D1 goes before the object, which knows what to delete.
 * - Every step may be repeated. Storage goes before the alarm: an alarm of an empty object finds nothing to do, but a
 *   wish without an alarm would wait for a client.
 */
import type { AlarmSource } from "./object-alarm.ts";
import { requestEnd } from "./run-cancel.ts";
import { saveRunEnd } from "./run-end.ts";
import type { ThreadContext } from "./thread-context.ts";

/** How soon a deletion that failed is tried again. */
export const DELETION_RETRY_MS = 30_000;

/** Not a rollback: that would first restore a state that goes anyway. */
const DELETED = { action: "interrupt", reason: "the thread is being deleted" } as const;

export interface ThreadDeletionPorts {
  readonly context: ThreadContext;
  /** Nothing of a batch goes on running. */
  readonly cancelBatches: () => Promise<void>;
  readonly arm: () => Promise<void>;
}

export class ThreadDeletion implements AlarmSource {
  readonly #ports: ThreadDeletionPorts;
  #isBegun = false;
  #isDone = false;

  constructor(ports: ThreadDeletionPorts) {
    this.#ports = ports;
  }

  /** Nothing of the thread is left, nor a schema to ask. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** The wish is stored, and not done. */
  isStored(): boolean {
    return !this.#isDone && this.#ports.context.threads.isDeleting();
  }

  nextDueAt(): number | undefined {
    const { context } = this.#ports;
    return this.#isBegun || this.isStored() ? context.now() + DELETION_RETRY_MS : undefined;
  }

  /** Rejects with the fault that stopped it; then the alarm, and whoever comes, goes on. */
  async run(): Promise<void> {
    if (this.#isDone) return;
    const { context, cancelBatches, arm } = this.#ports;
    context.close();
    this.#isBegun = true;
    // The alarm comes before the wish: without the wish it does nothing.
    await arm();
    context.threads.markDeleting(context.now());
    await this.#endRuns();
    await cancelBatches();
    await context.flush.close();
    const { owner, threadId } = context.thread();
    await context.flush.forgetThread({ owner, thread_id: threadId });
    this.#isDone = true;
    await context.storage.deleteAll();
    context.memory.forget();
    await context.storage.deleteAlarm();
  }

  /** For a wake: the fault is told, the alarm tries again. */
  async finish(): Promise<void> {
    try {
      await this.run();
    } catch (fault) {
      this.#ports.context.onFault(fault);
      await this.#ports.arm();
    }
  }

  /** Every run ends, and who waits for it hears of it. What an earlier wake drove is not taken up again for that. */
  async #endRuns(): Promise<void> {
    const { context } = this.#ports;
    const { runs, live, storage } = context;
    const active = runs.active();
    storage.transactionSync(() => {
      for (const { runId } of active) requestEnd(context, runId, DELETED);
    });
    for (const { runId } of active) live.get(runId)?.abort.abort();
    for (const { runId } of active) await live.get(runId)?.done;
    storage.transactionSync(() => {
      for (const run of runs.active()) saveRunEnd(context, { ...run, status: "interrupted", updatedAt: context.now() });
    });
    live.endedUndriven();
  }
}
