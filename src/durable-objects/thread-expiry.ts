/**
 * The thread's life, where a client bounded it (`ttl`): deleted like by `DELETE` once it is over. Owns when that is; the
 * deletion is `thread-deletion.ts`, and who starts it the object, so that a client's own delete is the same one.
 *
 * - A life counts from when it was set, whatever the thread does meanwhile.
 * - A run that is active, waiting for its turn included, ends first; a question that nobody answered holds nothing up.
 * - A thread without one has no alarm for it and no row.
 */
import type { ThreadTtl } from "../platform/durable-storage/thread-store.ts";
import type { ThreadTtlBody, ThreadTtlView } from "../protocol/threads.ts";
import type { AlarmSource } from "./object-alarm.ts";
import type { ThreadContext } from "./thread-context.ts";

const MS_PER_MINUTE = 60_000;

export class ThreadExpiry implements AlarmSource {
  readonly #context: ThreadContext;

  constructor(context: ThreadContext) {
    this.#context = context;
  }

  /** While a run is active its end arms the alarm again; a deletion that was begun has its own pace. */
  nextDueAt(): number | undefined {
    if (this.#context.isClosing || this.#context.threads.isDeleting()) return undefined;
    const ttl = this.#context.threads.ttl();
    return ttl === undefined || this.#isActive() ? undefined : ttl.expiresAt;
  }

  isOver(): boolean {
    const ttl = this.#context.threads.ttl();
    return ttl !== undefined && ttl.expiresAt <= this.#context.now() && !this.#isActive();
  }

  #isActive(): boolean {
    return this.#context.runs.activeRuns().length > 0;
  }
}

export function toTtl({ ttl: minutes }: ThreadTtlBody, now: number): ThreadTtl {
  return { v: 1, minutes, expiresAt: now + minutes * MS_PER_MINUTE };
}

export function toTtlView(ttl: ThreadTtl | undefined): ThreadTtlView | null {
  if (ttl === undefined) return null;
  return { strategy: "delete", ttl_minutes: ttl.minutes, expires_at: new Date(ttl.expiresAt).toISOString() };
}
