/**
 * Wakes those who wait for "something changed". Bumping costs nothing per waiter that is not there and never blocks.
 */
export class VersionSignal {
  #version = 0;
  #waiters = new Set<() => void>();

  get version(): number {
    return this.#version;
  }

  bump(): void {
    this.#version += 1;
    const waiters = this.#waiters;
    this.#waiters = new Set();
    for (const wake of waiters) wake();
  }

  /** True once the version moved past `seen`; false when `timeoutMs` went by first. */
  async wait(seen: number, timeoutMs: number): Promise<boolean> {
    if (this.#version !== seen) return true;
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        this.#waiters.delete(wake);
        resolve(false);
      }, timeoutMs);
      this.#waiters.add(wake);
    });
  }
}
