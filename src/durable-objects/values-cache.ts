/**
 * Rendered states of recent checkpoints. A live run primes it with what it has at hand, so that its readers do not each
 * load the state again; a replay renders from the checkpoint. Bounded to a few states.
 */

/** The newest state is what live readers share; one more covers a reader a step behind. */
const STATES_KEPT = 2;

export class ValuesCache {
  readonly #load: (checkpointId: string) => Promise<string>;
  readonly #rendered = new Map<string, string | Promise<string>>();

  constructor(load: (checkpointId: string) => Promise<string>) {
    this.#load = load;
  }

  prime(checkpointId: string, rendered: string): void {
    this.#keep(checkpointId, rendered);
  }

  /** The JSON of the state at a checkpoint; readers that ask together load it once. */
  async render(checkpointId: string): Promise<string> {
    const known = this.#rendered.get(checkpointId);
    if (known !== undefined) return known;
    const loading = this.#load(checkpointId);
    this.#keep(checkpointId, loading);
    try {
      return await loading;
    } catch (fault) {
      this.#rendered.delete(checkpointId);
      throw fault;
    }
  }

  #keep(checkpointId: string, rendered: string | Promise<string>): void {
    this.#rendered.delete(checkpointId);
    this.#rendered.set(checkpointId, rendered);
    if (this.#rendered.size <= STATES_KEPT) return;
    const oldest = this.#rendered.keys().next().value;
    if (oldest !== undefined) this.#rendered.delete(oldest);
  }
}
