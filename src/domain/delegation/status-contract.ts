/**
 * The status vocabulary of a delegation, shared with readers in other languages (contract version 2, R101).
 * Owns the values only; how a status is rendered for a model lives beside it in `delegation-text.ts`.
 */
export const SUBAGENT_STATUS_CONTRACT_VERSION = 2;

export const SUBAGENT_STATUSES = ["completed", "failed", "cancelled", "timed_out", "polling_timed_out"] as const;
export type SubagentStatus = (typeof SUBAGENT_STATUSES)[number];

/** What Deputy itself produces: `polling_timed_out` is read from older stores and never written. */
export type ProducedSubagentStatus = Exclude<SubagentStatus, "polling_timed_out">;

export const SUBAGENT_STOP_REASONS = ["token_capped", "turn_capped", "loop_capped"] as const;
export type SubagentStopReason = (typeof SUBAGENT_STOP_REASONS)[number];
