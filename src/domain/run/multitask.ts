/**
 * What happens to a new run on a thread, decided over its run rows alone. `reject` is the one strategy so far: a thread
 * has at most one active run.
 */
import { err, ok, type Result } from "../shared/result.ts";
import { isTerminal, type RunStatus } from "./run-status.ts";

export type MultitaskStrategy = "reject";

export interface ActiveRun {
  readonly runId: string;
  readonly status: RunStatus;
}

export type MultitaskRefusal = { readonly reason: "thread_busy"; readonly runId: string };

export function decideStart(
  runs: readonly ActiveRun[],
  _strategy: MultitaskStrategy,
): Result<{ readonly kind: "start_now" }, MultitaskRefusal> {
  const active = runs.find((run) => !isTerminal(run.status));
  return active === undefined ? ok({ kind: "start_now" }) : err({ reason: "thread_busy", runId: active.runId });
}
