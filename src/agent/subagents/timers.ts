/**
 * Timers as a port, so that tests turn the clock by hand.
 */
export interface Timers {
  set(afterMs: number, action: () => void): unknown;
  /** Unknown or fired timers change nothing. */
  clear(timer: unknown): void;
}

export const systemTimers: Timers = {
  set: (afterMs, action) => setTimeout(action, afterMs),
  clear: (timer) => clearTimeout(timer as ReturnType<typeof setTimeout> | undefined),
};
