/**
 * The circuit breakers of one object, one per model: the memory behind `domain/model-errors/circuit`.
 * One instance per thread object (and one per isolate for batch items), so that every run and every child of a thread
 * sees the same provider failing. Nothing is stored: after an eviction a provider gets a fresh chance.
 */
import {
  CLOSED_CIRCUIT,
  type Circuit,
  type CircuitPolicy,
  type CircuitResult,
  enterCircuit,
  leaveCircuit,
} from "../../domain/model-errors/circuit.ts";

/** A call that was let through. `leave` is called once, whatever became of it. */
export interface CircuitPass {
  /** One attempt only: it finds out, it does not insist. */
  readonly isProbe: boolean;
  leave(result: CircuitResult): void;
}

/** The section `llm_call.circuit` of the configuration. */
export interface CircuitSettings {
  readonly failure_threshold: number;
  readonly recovery_timeout_seconds: number;
}

export class CircuitBreakers {
  readonly #policy: CircuitPolicy;
  readonly #now: () => number;
  /** Bounded by the configured models: only their names get here, and a closed one is forgotten. */
  readonly #circuits = new Map<string, Circuit>();

  constructor(settings: CircuitSettings, now: () => number) {
    this.#policy = {
      failureThreshold: settings.failure_threshold,
      recoveryMs: settings.recovery_timeout_seconds * 1_000,
    };
    this.#now = now;
  }

  /** `undefined` while the model is not to be asked. */
  enter(model: string): CircuitPass | undefined {
    const { circuit, entry } = enterCircuit(this.#find(model), this.#policy, this.#now());
    if (entry === "refused") return undefined;
    this.#keep(model, circuit);
    return {
      isProbe: entry === "probe",
      leave: (result) => {
        this.#keep(model, leaveCircuit(this.#find(model), { entry, result }, this.#policy, this.#now()));
      },
    };
  }

  #find(model: string): Circuit {
    return this.#circuits.get(model) ?? CLOSED_CIRCUIT;
  }

  #keep(model: string, circuit: Circuit): void {
    if (circuit.failures === 0 && circuit.openedAt === null) this.#circuits.delete(model);
    else this.#circuits.set(model, circuit);
  }
}
