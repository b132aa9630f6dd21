/**
 * The circuit breaker of one model: after a row of exhausted calls nobody waits for it again for a while. Pure: the
 * state is a value, the clock an argument.
 * Invariants: while it is open at most one probe is out; only the probe's end or a success of any call moves it; a call
 * that was let in before it opened and fails later changes nothing.
 */
export interface Circuit {
  /** Exhausted calls in a row. */
  readonly failures: number;
  /** When it opened, in milliseconds; null while it is closed. */
  readonly openedAt: number | null;
  readonly isProbing: boolean;
}

export interface CircuitPolicy {
  readonly failureThreshold: number;
  readonly recoveryMs: number;
}

/** `probe`: the one call that finds out whether an open circuit may close. */
export type CircuitEntry = "closed" | "probe" | "refused";

/** `uncounted`: the call says nothing about the provider's health, such as a refused request or an abort. */
export type CircuitResult = "succeeded" | "failed" | "uncounted";

export const CLOSED_CIRCUIT: Circuit = { failures: 0, openedAt: null, isProbing: false };

export function enterCircuit(
  circuit: Circuit,
  policy: CircuitPolicy,
  now: number,
): { readonly circuit: Circuit; readonly entry: CircuitEntry } {
  if (circuit.openedAt === null) return { circuit, entry: "closed" };
  if (circuit.isProbing || now - circuit.openedAt < policy.recoveryMs) return { circuit, entry: "refused" };
  return { circuit: { ...circuit, isProbing: true }, entry: "probe" };
}

/** `entry` is what the call was let in as. An uncounted probe leaves the circuit open and due for the next one. */
export function leaveCircuit(
  circuit: Circuit,
  { entry, result }: { readonly entry: "closed" | "probe"; readonly result: CircuitResult },
  policy: CircuitPolicy,
  now: number,
): Circuit {
  if (result === "succeeded") return CLOSED_CIRCUIT;
  if (entry === "probe") {
    // Somebody else's success closed it meanwhile: this probe's end is old news.
    if (!circuit.isProbing) return circuit;
    return { ...circuit, isProbing: false, openedAt: result === "failed" ? now : circuit.openedAt };
  }
  if (result === "uncounted" || circuit.openedAt !== null) return circuit;
  const failures = circuit.failures + 1;
  return { failures, openedAt: failures >= policy.failureThreshold ? now : null, isProbing: false };
}
