/**
 * A run's life: `pending → running → success | error | timeout | interrupted`. Owns the words and which may follow
 * which; a terminal run never changes again (P1).
 */
import { unreachable } from "../shared/assert.ts";

export type RunStatus = "pending" | "running" | TerminalRunStatus;
export type TerminalRunStatus = "success" | "error" | "timeout" | "interrupted";

export function isTerminal(status: RunStatus): status is TerminalRunStatus {
  return status !== "pending" && status !== "running";
}

export type ThreadStatus = "idle" | "busy" | "interrupted" | "error";

export interface RunSummary {
  readonly status: RunStatus;
  /** The run ended because its graph waits for an answer, not because somebody cancelled it. */
  readonly waitsForAnswer: boolean;
}

/** A thread's status from its active run, else from its newest one. `undefined` where no run ever was. */
export function decideThreadStatus(newest: RunSummary | undefined): ThreadStatus {
  if (newest === undefined) return "idle";
  switch (newest.status) {
    case "pending":
    case "running":
      return "busy";
    case "error":
    case "timeout":
      return "error";
    case "interrupted":
      return newest.waitsForAnswer ? "interrupted" : "idle";
    case "success":
      return "idle";
    default:
      return unreachable(newest.status);
  }
}
