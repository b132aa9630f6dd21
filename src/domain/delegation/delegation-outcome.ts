/**
 * How one delegation ended, as plain data: what the executor settles and everything else renders from.
 * Owns the shape and its validity. A non-completed outcome may carry partial text in `result`; it is never a success.
 */
import {
  SUBAGENT_STATUSES,
  SUBAGENT_STOP_REASONS,
  type SubagentStatus,
  type SubagentStopReason,
} from "./status-contract.ts";
import { invariant } from "../shared/assert.ts";

/** Sums over one child. Absent (null) when no model answer reported usage: never zeros (R63). */
export interface DelegationUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
}

/** Refusals that end a delegation before any model call. */
export const ADMISSION_ERROR_CODES = ["admission_rejected", "admission_queue_full", "admission_timeout"] as const;
export type AdmissionErrorCode = (typeof ADMISSION_ERROR_CODES)[number];

export interface DelegationOutcome {
  readonly status: SubagentStatus;
  readonly result?: string | undefined;
  readonly error?: string | undefined;
  readonly stopReason?: SubagentStopReason | undefined;
  readonly errorCode?: AdmissionErrorCode | undefined;
  readonly usage?: DelegationUsage | null | undefined;
  readonly modelName?: string | undefined;
}

export function isSubagentStatus(value: unknown): value is SubagentStatus {
  return (SUBAGENT_STATUSES as readonly unknown[]).includes(value);
}

export function isSubagentStopReason(value: unknown): value is SubagentStopReason {
  return (SUBAGENT_STOP_REASONS as readonly unknown[]).includes(value);
}

/** Throws when a producer invents a status or a stop reason: readers in other languages know only the contract's. */
export function assertContractValues(outcome: DelegationOutcome): void {
  invariant(isSubagentStatus(outcome.status), `not a subagent status: ${outcome.status}`);
  invariant(
    outcome.stopReason === undefined || isSubagentStopReason(outcome.stopReason),
    `not a subagent stop reason: ${String(outcome.stopReason)}`,
  );
}

export function isBlank(text: string | null | undefined): boolean {
  return text === null || text === undefined || text.trim() === "";
}
