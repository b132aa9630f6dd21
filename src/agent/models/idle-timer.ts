/**
 * Silence past a limit aborts: one timer for a request, restarted by every byte.
 * `expired` tells silence from an abort by the caller, which reaches the same fetch.
 */
export class IdleTimer {
  readonly #controller = new AbortController();
  readonly #limitMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
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
    this.#timer = setTimeout(() => this.#controller.abort(new Error("idle")), this.#limitMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Rejects as soon as the limit passes, also when the runtime leaves a pending read open after the abort. */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const stop = () => reject(this.#controller.signal.reason as Error);
      if (this.expired) return stop();
      this.signal.addEventListener("abort", stop, { once: true });
      work.then(resolve, reject).finally(() => this.signal.removeEventListener("abort", stop));
    });
  }
}
