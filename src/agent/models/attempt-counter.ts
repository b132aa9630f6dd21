/**
 * Remembers how often a scripted turn was attempted, so that `fail 429 2` fails twice and then answers.
 * The memory is the process's: after a restart the count starts again. Bounded, oldest turn forgotten first.
 */

/** Turns in retry at one time are few; the bound only keeps a long-lived isolate from growing. */
export const COUNTED_TURNS_MAX = 1_000;

export class AttemptCounter {
  readonly #attempts = new Map<string, number>();

  /** 1 on the first attempt. */
  next(turnKey: string): number {
    const attempt = (this.#attempts.get(turnKey) ?? 0) + 1;
    this.#attempts.delete(turnKey);
    this.#attempts.set(turnKey, attempt);
    const [oldest] = this.#attempts.keys();
    if (this.#attempts.size > COUNTED_TURNS_MAX && oldest !== undefined) this.#attempts.delete(oldest);
    return attempt;
  }
}
