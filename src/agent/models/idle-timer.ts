/**
 * Silence past a limit aborts: one timer for a request, restarted for every read.
 * `expired` tells silence from an abort by the caller, which reaches the same fetch.
 */
export class IdleTimer {
  readonly limitMs: number;
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(limitMs: number) {
    this.limitMs = limitMs;
    this.touch();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get expired(): boolean {
    return this.#controller.signal.aborted;
  }

  touch(): void {
    this.stop();
    this.#timer = setTimeout(() => this.#controller.abort(new Error("idle")), this.limitMs);
  }

  /** Silence by another measure than time without a byte. Throws. */
  expire(): never {
    this.#controller.abort(new Error("idle"));
    throw this.signal.reason as Error;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /**
   * Runs `work` under the limit. Rejects as soon as the limit passes, also when the runtime leaves a pending read open
   * after the abort.
   */
  async watch<T>(work: () => Promise<T>): Promise<T> {
    this.touch();
    const { promise, reject } = Promise.withResolvers<never>();
    const stop = () => reject(this.signal.reason as Error);
    this.signal.addEventListener("abort", stop, { once: true });
    try {
      return await Promise.race([work(), promise]);
    } finally {
      this.signal.removeEventListener("abort", stop);
      this.stop();
    }
  }
}
