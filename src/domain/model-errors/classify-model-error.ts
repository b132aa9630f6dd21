/**
 * What a failed model call means: another attempt, or none, and why (delegation-behaviour 3.5). Pure: facts in, reason out.
 * The provider's machine-written code decides first, then the status; words decide only where a status leaves the
 * question open, so that a 429 that mentions a quota or a permission stays what it is (docs/decisions/model-errors.md).
 */
import { unreachable } from "../shared/assert.ts";

/** How an attempt failed, as the model port sees it. */
export type ModelFailureReason =
  /** HTTP error status, or no connection. */
  | "provider"
  /** An error object inside a 200 stream. */
  | "stream_error"
  /** The stream ended without a finish reason. */
  | "truncated"
  /** No bytes for longer than `runtime.model_idle_seconds`. */
  | "idle"
  /** A finished answer without text and without calls. */
  | "empty";

export interface ModelErrorFacts {
  readonly reason: ModelFailureReason;
  /** HTTP status, also one that an error inside a stream named. */
  readonly status?: number | undefined;
  /** The provider's own word for the error (`insufficient_quota`), never a number. */
  readonly code?: string | undefined;
  readonly message: string;
}

/** Why a model call failed; `error_reason` on the wire, where `circuit_open` is one more. */
export type ModelErrorReason = "quota" | "auth" | "burst_rate" | "transient" | "busy" | "generic";

const RETRIABLE: ReadonlySet<ModelErrorReason> = new Set(["burst_rate", "transient", "busy"]);

export function isRetriable(reason: ModelErrorReason): boolean {
  return RETRIABLE.has(reason);
}

/** The answer had begun, or should have: asking for the same whole again often breaks at the same place. */
export function isStreamDrop({ reason }: ModelErrorFacts): boolean {
  return reason === "truncated" || reason === "idle";
}

/** An account without money: waiting does not help, whatever the status is (OpenAI sends it as a 429). */
const QUOTA_CODE = /^(insufficient_(quota|user_quota|balance|credits?|funds)|billing_[a-z_]+|payment_required)$/;
const BURST_CODE = /^(limit_burst_rate|burst_rate_limit(_exceeded)?)$/;

const QUOTA_WORDS = /\b(quota|billing|credits?|payment|balance|top up)\b|余额|额度|配额|欠费|充值/i;
const AUTH_WORDS =
  /\b(authenticat\w+|unauthorized|unauthenticated|permissions?|forbidden|access denied|api key)\b|鉴权|未授权|无权|权限/i;
const BURST_WORDS = /\b(limit.burst.rate|rate increased too quickly|burst rate)\b/i;
const BUSY_WORDS =
  /\b(overloaded|rate.?limit\w*|too many requests|try again later|server busy|at capacity)\b|繁忙|稍后再?试|限流/i;

/** Statuses that pass by themselves, all of 5xx besides. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([408, 409, 425, 429]);

export function classifyModelError(facts: ModelErrorFacts): ModelErrorReason {
  const code = facts.code?.toLowerCase() ?? "";
  if (QUOTA_CODE.test(code)) return "quota";
  if (BURST_CODE.test(code)) return "burst_rate";
  const { status } = facts;
  return status === undefined || status < 400 ? withoutStatus(facts) : byStatus(status, facts);
}

function byStatus(status: number, { message }: ModelErrorFacts): ModelErrorReason {
  if (status === 401 || status === 407) return "auth";
  if (status === 402) return "quota";
  if (status === 403) return QUOTA_WORDS.test(message) ? "quota" : "auth";
  if (PASSING_STATUSES.has(status) || status >= 500) return BURST_WORDS.test(message) ? "burst_rate" : "transient";
  // Some providers send an empty account or a bad key as a bad request; none of these is tried again.
  if (status === 400) return refusalByWords(message) ?? "generic";
  return "generic";
}

function withoutStatus(facts: ModelErrorFacts): ModelErrorReason {
  switch (facts.reason) {
    case "provider":
    case "truncated":
    case "idle":
    case "empty":
      return "transient";
    case "stream_error":
      return streamErrorByWords(`${(facts.code ?? "").replaceAll("_", " ")} ${facts.message}`);
    default:
      return unreachable(facts.reason);
  }
}

/** What passes comes first: mistaking it for a refusal ends a run, the other way round costs two bounded waits. */
function streamErrorByWords(text: string): ModelErrorReason {
  if (BURST_WORDS.test(text)) return "burst_rate";
  if (BUSY_WORDS.test(text)) return "busy";
  // A provider that accepted the request and then broke off, saying nothing we know.
  return refusalByWords(text) ?? "transient";
}

function refusalByWords(text: string): "quota" | "auth" | undefined {
  if (QUOTA_WORDS.test(text)) return "quota";
  return AUTH_WORDS.test(text) ? "auth" : undefined;
}
