/**
 * The enabled managed subagents as a thread takes them in: read once for a run, when it is accepted, and once for a batch,
 * when it is submitted. Owns what happens when D1 cannot be read; keeps nothing, because an edit holds from the next run.
 */
import type { ManagedSubagent, ManagedSubagentStore } from "../domain/delegation/managed-subagent.ts";

export class ManagedSnapshots {
  readonly #store: Pick<ManagedSubagentStore, "systemListEnabled">;
  readonly #onFault: (fault: unknown) => void;

  constructor(store: Pick<ManagedSubagentStore, "systemListEnabled">, onFault: (fault: unknown) => void) {
    this.#store = store;
    this.#onFault = onFault;
  }

  /** A run needs no D1 to start: without it the run has the operator's subagents, and the fault is told. */
  async forRun(): Promise<readonly ManagedSubagent[]> {
    try {
      return await this.current();
    } catch (fault) {
      this.#onFault(fault);
      return [];
    }
  }

  /** Throws when D1 cannot be read. */
  current(): Promise<readonly ManagedSubagent[]> {
    return this.#store.systemListEnabled();
  }
}
