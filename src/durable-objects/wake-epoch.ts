/**
 * This wake's epoch: a number that rises with every wake of the object, taken from its storage when it is first needed
 * (one row a wake). Owns how an instance finds out that it was replaced, and what a refused write to D1 means.
 *
 * - Looking costs one read of storage, and on the platform a retired instance dies of it: that is the point. It is done
 *   right before a side effect (P3), so that a zombie asks no model and starts no tool.
 * - Only the instance that holds the newest epoch of the storage may raise it past a fence. A thread that was deleted and
 *   made again starts at 1 behind the fence of its predecessor, and gets past it so.
 */
import { RetiredInstanceError } from "../domain/shared/retired-instance.ts";
import { type FencedThread, StaleEpochError } from "../platform/d1/fence.ts";
import type { ThreadRecord, ThreadStore } from "../platform/durable-storage/thread-store.ts";

export interface WakeEpochPorts {
  readonly threads: ThreadStore;
  /** Throws when there is no row. */
  readonly thread: () => ThreadRecord;
  readonly report: (what: string, details: Readonly<Record<string, unknown>>) => void;
}

export class WakeEpoch {
  readonly #ports: WakeEpochPorts;
  #epoch: number | undefined;
  #isClosed = false;

  constructor(ports: WakeEpochPorts) {
    this.#ports = ports;
  }

  take(): number {
    if (this.#epoch !== undefined) return this.#epoch;
    const thread = this.#ports.thread();
    this.#epoch = thread.epoch + 1;
    this.#ports.threads.save({ ...thread, epoch: this.#epoch });
    return this.#epoch;
  }

  /** Throws `RetiredInstanceError` once a later wake took the storage, or what the platform throws then. */
  assertCurrent(): void {
    const epoch = this.take();
    const newest = this.#ports.threads.epoch();
    if (newest !== epoch) throw new RetiredInstanceError(epoch, newest);
  }

  /** Runs a write to D1 under this epoch; one that a later instance's fence refuses is reported and thrown. */
  async fenced<T>(write: (thread: FencedThread) => Promise<T>): Promise<T> {
    return this.#fenced(write, () => !this.#isClosed);
  }

  /** The deletion's: a thread that is being deleted writes nothing else, and gets nothing past its own fence. */
  async fencedLast<T>(write: (thread: FencedThread) => Promise<T>): Promise<T> {
    this.#isClosed = true;
    return this.#fenced(write, () => true);
  }

  async #fenced<T>(write: (thread: FencedThread) => Promise<T>, isAllowed: () => boolean): Promise<T> {
    this.assertCurrent();
    if (!isAllowed()) throw new Error("the thread is being deleted");
    const { owner, threadId } = this.#ports.thread();
    try {
      return await write({ owner, threadId, epoch: this.take() });
    } catch (fault) {
      if (!(fault instanceof StaleEpochError) || !isAllowed()) throw fault;
      this.#ports.report("a write to D1 of an older epoch was refused", { thread_id: threadId, fault: fault.message });
      this.#raise(fault.newest);
      return write({ owner, threadId, epoch: this.take() });
    }
  }

  #raise(newest: number): void {
    this.assertCurrent();
    this.#epoch = newest + 1;
    this.#ports.threads.save({ ...this.#ports.thread(), epoch: this.#epoch });
  }
}
