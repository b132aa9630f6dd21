/**
 * The one terminal transition of a delegation: the first write wins, payload before status, nothing after it counts.
 */
import { isSubagentStatus, type DelegationOutcome } from "../../domain/delegation/delegation-outcome.ts";
import { invariant } from "../../domain/shared/assert.ts";

export class TerminalCell {
  readonly #settled = Promise.withResolvers<DelegationOutcome>();
  #payload: DelegationOutcome | undefined;
  #status: DelegationOutcome["status"] | "in_progress" = "in_progress";

  get status(): DelegationOutcome["status"] | "in_progress" {
    return this.#status;
  }

  get payload(): DelegationOutcome | undefined {
    return this.#payload;
  }

  /** Resolves with the first terminal write; rejects only after `abandon`. */
  get settled(): Promise<DelegationOutcome> {
    return this.#settled.promise;
  }

  /** False when a terminal write came before: then nothing changed. */
  settle(outcome: DelegationOutcome): boolean {
    invariant(isSubagentStatus(outcome.status), `not a terminal status: ${outcome.status}`);
    if (this.#status !== "in_progress") return false;
    this.#payload = Object.freeze({ ...outcome });
    this.#status = outcome.status;
    this.#settled.resolve(this.#payload);
    return true;
  }

  /** For LangGraph's own signals: the delegation has not ended, its task is to be left by a throw. */
  abandon(signal: unknown): void {
    if (this.#status === "in_progress") this.#settled.reject(signal);
  }
}
