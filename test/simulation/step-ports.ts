/** What the simulated graph and its children are given, and how they stop. */
import type { RunLedger } from "./run-ledger.ts";
import type { Process, World } from "./world.ts";

export interface StepGraphPorts {
  readonly world: World;
  readonly ledger: RunLedger;
  readonly process: Process;
  readonly newId: (notBefore?: number) => string;
}

/** Rejects once the signal fires. */
export function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(new Error("aborted"));
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}
