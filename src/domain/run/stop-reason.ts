/**
 * Why a run was held back, beside its status (delegation-behaviour 1.8): another namespace than a subagent's stop reason.
 * Owns the values, and the mark by which the answer that met the limit carries its reason until the run's end.
 */
export const RUN_STOP_REASONS = [
  "loop_capped",
  "token_capped",
  "safety_capped",
  "model_length_capped",
  "subagent_limit_capped",
] as const;
export type RunStopReason = (typeof RUN_STOP_REASONS)[number];

/** In the `additional_kwargs` of the answer. Never taken from a client. */
export const RUN_STOP_REASON_KEY = "deputy_run_stop_reason";

export function parseRunStopReason(value: unknown): RunStopReason | undefined {
  return RUN_STOP_REASONS.find((reason) => reason === value);
}
