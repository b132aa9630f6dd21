/**
 * A map that keeps the entries used last and forgets the others: memory of a process that runs on.
 */
export class RecentMap<Value> {
  readonly #entries = new Map<string, Value>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  /** The entry of `key`, made when there is none; the newest afterwards. */
  take(key: string, make: () => Value): Value {
    const value = this.#entries.has(key) ? (this.#entries.get(key) as Value) : make();
    this.set(key, value);
    return value;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#max) return;
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined) this.#entries.delete(oldest);
  }
}
