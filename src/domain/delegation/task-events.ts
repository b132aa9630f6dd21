/**
 * The `task_*` events a live client sees on the `custom` stream (delegation-behaviour 2, R85).
 * Owns their exact fields. `usage` is cumulative: a reader replaces, never adds. `null` means no usage was reported.
 */
import { unreachable } from "../shared/assert.ts";
import { isBlank, type DelegationOutcome, type DelegationUsage } from "./delegation-outcome.ts";
import { boundText } from "./bounded-text.ts";
import { NO_RESPONSE_SENTINEL } from "./delegation-text.ts";
import { STEP_CHARS_MAX } from "./subagent-steps.ts";

interface TaskEventBase {
  readonly task_id: string;
  readonly model_name: string | null;
}

export interface TaskStarted extends TaskEventBase {
  readonly type: "task_started";
  readonly description: string;
}

export interface TaskRunning extends TaskEventBase {
  readonly type: "task_running";
  /** The captured message as a wire dict, its texts capped. */
  readonly message: Readonly<Record<string, unknown>>;
  /** From 1. */
  readonly message_index: number;
  readonly total_messages: number;
  readonly usage: DelegationUsage | null;
}

export interface TaskCompleted extends TaskEventBase {
  readonly type: "task_completed";
  readonly result: string;
  readonly usage: DelegationUsage | null;
}

export interface TaskEndedOtherwise extends TaskEventBase {
  readonly type: "task_failed" | "task_cancelled" | "task_timed_out";
  readonly error: string;
  readonly usage: DelegationUsage | null;
}

export type TaskEvent = TaskStarted | TaskRunning | TaskCompleted | TaskEndedOtherwise;

/** The terminal event of an outcome; texts carry the cap of live frames. */
export function toTerminalTaskEvent(taskId: string, outcome: DelegationOutcome): TaskCompleted | TaskEndedOtherwise {
  const base = { task_id: taskId, usage: outcome.usage ?? null, model_name: outcome.modelName ?? null };
  const error = boundText(outcome.error ?? "", STEP_CHARS_MAX);
  switch (outcome.status) {
    case "completed": {
      const result = isBlank(outcome.result) ? NO_RESPONSE_SENTINEL : (outcome.result ?? "");
      return { type: "task_completed", ...base, result: boundText(result, STEP_CHARS_MAX) };
    }
    case "failed":
      return { type: "task_failed", ...base, error };
    case "cancelled":
      return { type: "task_cancelled", ...base, error };
    case "timed_out":
    case "polling_timed_out":
      return { type: "task_timed_out", ...base, error };
    default:
      return unreachable(outcome.status);
  }
}
