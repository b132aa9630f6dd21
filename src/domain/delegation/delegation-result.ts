/**
 * The machine-readable side of a `task` result: the `additional_kwargs` keys (delegation-behaviour 1.8).
 * Owns writing and reading them. Writing an invalid status or stop reason throws; reading tolerates older writers.
 */
import { boundText } from "./bounded-text.ts";
import {
  assertContractValues,
  isBlank,
  isSubagentStatus,
  isSubagentStopReason,
  type DelegationOutcome,
  type DelegationUsage,
} from "./delegation-outcome.ts";
import type { SubagentStatus, SubagentStopReason } from "./status-contract.ts";

/** Metadata is a brief, carried in every state read; the full result is the message's content. */
export const METADATA_CHARS_MAX = 2_000;

/** `resultSha256`: lower hex over the whole untrimmed result, computed by the caller. */
export function toDelegationKwargs(outcome: DelegationOutcome, resultSha256?: string): Record<string, unknown> {
  assertContractValues(outcome);
  const kwargs: Record<string, unknown> = { subagent_status: outcome.status };
  if (outcome.status === "completed" && !isBlank(outcome.result)) {
    kwargs.subagent_result_brief = boundText((outcome.result ?? "").trim(), METADATA_CHARS_MAX);
    if (resultSha256 !== undefined) kwargs.subagent_result_sha256 = resultSha256;
  }
  if (outcome.status !== "completed" && !isBlank(outcome.error)) {
    kwargs.subagent_error = boundText((outcome.error ?? "").trim(), METADATA_CHARS_MAX);
  }
  if (outcome.errorCode !== undefined) kwargs.subagent_error_code = outcome.errorCode;
  if (outcome.stopReason !== undefined) kwargs.subagent_stop_reason = outcome.stopReason;
  if (!isBlank(outcome.modelName)) kwargs.subagent_model_name = (outcome.modelName ?? "").trim();
  if (parseUsage(outcome.usage) !== undefined) kwargs.subagent_token_usage = outcome.usage;
  return kwargs;
}

export interface DelegationMetadata {
  readonly status: SubagentStatus;
  readonly stopReason?: SubagentStopReason;
  readonly resultBrief?: string;
  readonly resultSha256?: string;
  readonly error?: string;
  readonly modelName?: string;
  readonly usage?: DelegationUsage;
}

/** `undefined` when the kwargs name no known status: the delegation is then still in progress. */
export function parseDelegationKwargs(kwargs: Readonly<Record<string, unknown>>): DelegationMetadata | undefined {
  const brief = parseText(kwargs.subagent_result_brief);
  const status = parseStatus(kwargs.subagent_status, brief);
  if (status === undefined) return undefined;
  const legacyStop = kwargs.subagent_status === LEGACY_MAX_TURNS ? "turn_capped" : undefined;
  const stopReason = isSubagentStopReason(kwargs.subagent_stop_reason) ? kwargs.subagent_stop_reason : legacyStop;
  const sha = kwargs.subagent_result_sha256;
  const error = parseText(kwargs.subagent_error);
  const modelName = parseText(kwargs.subagent_model_name);
  const usage = parseUsage(kwargs.subagent_token_usage);
  return {
    status,
    ...(stopReason === undefined ? {} : { stopReason }),
    ...(brief === undefined ? {} : { resultBrief: brief }),
    ...(typeof sha === "string" && /^[0-9a-f]{64}$/.test(sha) ? { resultSha256: sha } : {}),
    ...(error === undefined ? {} : { error }),
    ...(modelName === undefined ? {} : { modelName }),
    ...(usage === undefined ? {} : { usage }),
  };
}

/** Written by stores older than contract version 2. */
const LEGACY_MAX_TURNS = "max_turns_reached";

function parseStatus(value: unknown, brief: string | undefined): SubagentStatus | undefined {
  if (value === LEGACY_MAX_TURNS) return brief === undefined ? "failed" : "completed";
  return isSubagentStatus(value) ? value : undefined;
}

function parseText(value: unknown): string | undefined {
  return typeof value === "string" && !isBlank(value) ? value : undefined;
}

/** All three counts as non-negative integers, or nothing. */
export function parseUsage(value: unknown): DelegationUsage | undefined {
  if (value === null || typeof value !== "object") return undefined;
  const { input_tokens, output_tokens, total_tokens } = value as Record<string, unknown>;
  if (!isCount(input_tokens) || !isCount(output_tokens) || !isCount(total_tokens)) return undefined;
  return { input_tokens, output_tokens, total_tokens };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
