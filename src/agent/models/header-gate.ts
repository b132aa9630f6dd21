/**
 * At most five requests of one object wait for response headers at once. A Durable Object may have six connections that
 * wait for headers; the sixth blocks everything else it fetches, and local workerd does not show it (architecture 6).
 * Owns the queues, one a scope: an isolate holds several objects, and one must not wait for another's provider.
 * First come, first served; an abort leaves the queue at once; a scope without requests takes no memory.
 */

/** One below the platform's six, so that the object can still fetch something else. */
export const HEADER_WAITS_MAX = 5;

interface Gate {
  inside: number;
  readonly waiting: (() => void)[];
}

export class HeaderGates {
  readonly #gates = new Map<string, Gate>();

  /** `inner`, held back while too many requests of `scope` wait for headers. */
  wrap(inner: typeof fetch, scope: string): typeof fetch {
    return async (input, init) => {
      const leave = await this.enter(scope, init?.signal);
      try {
        return await inner(input, init);
      } finally {
        leave();
      }
    };
  }

  /**
   * Resolves once a request of `scope` may be built and sent; rejects with the signal's reason. Call what it gives when
   * the headers are there or will not come; later calls change nothing.
   */
  async enter(scope: string, signal: AbortSignal | null | undefined): Promise<() => void> {
    await this.#enter(scope, signal);
    let isInside = true;
    return () => {
      if (isInside) this.#leave(scope);
      isInside = false;
    };
  }

  get size(): number {
    return this.#gates.size;
  }

  async #enter(scope: string, signal: AbortSignal | null | undefined): Promise<void> {
    signal?.throwIfAborted();
    const gate = this.#gates.get(scope) ?? { inside: 0, waiting: [] };
    this.#gates.set(scope, gate);
    if (gate.inside < HEADER_WAITS_MAX) gate.inside += 1;
    else await waitIn(gate.waiting, signal);
  }

  /** The place goes to the next in the queue, or is free again. */
  #leave(scope: string): void {
    const gate = this.#gates.get(scope);
    if (!gate) return;
    const next = gate.waiting.shift();
    if (next) return next();
    gate.inside -= 1;
    if (gate.inside === 0) this.#gates.delete(scope);
  }
}

function waitIn(waiting: (() => void)[], signal: AbortSignal | null | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const enter = () => {
      signal?.removeEventListener("abort", leave);
      resolve();
    };
    const leave = () => {
      waiting.splice(waiting.indexOf(enter), 1);
      reject(signal?.reason as Error);
    };
    waiting.push(enter);
    signal?.addEventListener("abort", leave, { once: true });
  });
}
