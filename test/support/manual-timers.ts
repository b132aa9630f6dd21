/** A clock and timers that move only when a test moves them. */
import type { Timers } from "../../src/agent/subagents/timers.ts";

export class ManualTimers implements Timers {
  #now = 0;
  #last = 0;
  readonly #due = new Map<number, { at: number; action: () => void }>();

  now(): number {
    return this.#now;
  }

  pending(): number {
    return this.#due.size;
  }

  set(afterMs: number, action: () => void): unknown {
    const id = (this.#last += 1);
    this.#due.set(id, { at: this.#now + afterMs, action });
    return id;
  }

  clear(timer: unknown): void {
    if (typeof timer === "number") this.#due.delete(timer);
  }

  /** Fires what comes due, in order. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const [next] = [...this.#due].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at);
      if (next === undefined) break;
      this.#now = next[1].at;
      this.#due.delete(next[0]);
      next[1].action();
    }
    this.#now = end;
  }
}
