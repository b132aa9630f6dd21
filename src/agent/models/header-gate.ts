/**
 * At most five requests wait for response headers at once. A Durable Object may have six connections that wait for
 * headers; the sixth and later block everything else it fetches, and local workerd does not show it (architecture 6).
 * Owns the queue only: first come, first served, and an abort leaves it at once.
 */

/** One below the platform's six, so that the object can still fetch something else. */
export const HEADER_WAITS_MAX = 5;

export function gateHeaders(inner: typeof fetch, max: number = HEADER_WAITS_MAX): typeof fetch {
  let free = max;
  const waiting: (() => void)[] = [];
  const release = () => {
    const next = waiting.shift();
    if (next) next();
    else free += 1;
  };
  const acquire = (signal: AbortSignal | null | undefined): Promise<void> => {
    signal?.throwIfAborted();
    if (free > 0) {
      free -= 1;
      return Promise.resolve();
    }
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
  };
  return async (input, init) => {
    await acquire(init?.signal);
    try {
      return await inner(input, init);
    } finally {
      release();
    }
  };
}
