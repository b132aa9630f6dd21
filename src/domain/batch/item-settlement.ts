/**
 * What one attempt at an item leaves behind: the pure half of settling and of sweeping.
 * Upholds B3 (`attempts` rises only on real failure or lease expiry; waiting and shutdown are deferrals) and B5 (only
 * `completed`, `failed` and `pending` come out; nothing here leaves a terminal status).
 */
import { unreachable } from "../shared/assert.ts";
import { ITEM_ERROR_CHARS_MAX, ITEM_OUTPUTS_JSON_BYTES_MAX } from "./batch-limits.ts";
import type { ItemOutputs, TokenUsage } from "./batch.ts";
import { boundItemText } from "./item-text.ts";

export type BatchItemOutcome =
  | {
      readonly kind: "completed";
      readonly result: string;
      readonly usage: TokenUsage | null;
      readonly outputs: ItemOutputs | null;
    }
  | { readonly kind: "failed"; readonly error: string }
  /** Refused or postponed before the model ran, or stopped by a shutdown: costs no attempt. */
  | { readonly kind: "deferred"; readonly reason: string }
  /** Its lease was lost or its batch cancelled: there is nothing left to write. */
  | { readonly kind: "aborted" };

export type AttemptEnd = "completed" | "failed" | "lease_expired";

/** One guarded write. */
export interface ItemSettlement {
  readonly ordinal: number;
  readonly status: "completed" | "failed" | "pending";
  readonly attemptsSpent: 0 | 1;
  readonly deferred: 0 | 1;
  readonly result: string | null;
  readonly error: string | null;
  readonly usage: TokenUsage | null;
  readonly outputs: ItemOutputs | null;
  /** The row of the item's history; a deferral leaves none. */
  readonly event: { readonly attempt: number; readonly kind: AttemptEnd } | null;
}

export interface AttemptFacts {
  readonly ordinal: number;
  /** Attempts spent before this one. */
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly resultCharsMax: number;
}

const BLANK = {
  attemptsSpent: 0,
  deferred: 0,
  result: null,
  error: null,
  usage: null,
  outputs: null,
  event: null,
} as const;

/** `undefined` for an aborted attempt. */
export function decideSettlement(facts: AttemptFacts, outcome: BatchItemOutcome): ItemSettlement | undefined {
  switch (outcome.kind) {
    case "completed":
      return settleCompleted(facts, outcome);
    case "failed":
      return settleFailure(facts, outcome.error, "failed");
    case "deferred":
      return { ...BLANK, ordinal: facts.ordinal, status: "pending", deferred: 1 };
    case "aborted":
      return undefined;
    default:
      return unreachable(outcome);
  }
}

/** The holder of the lease is gone: its attempt is spent. */
export function decideExpiry(facts: Pick<AttemptFacts, "ordinal" | "attempts" | "maxAttempts">): ItemSettlement {
  return settleFailure(facts, "lease_expired: the worker that ran this item stopped answering", "lease_expired");
}

function settleCompleted(
  facts: AttemptFacts,
  outcome: Extract<BatchItemOutcome, { kind: "completed" }>,
): ItemSettlement {
  const outputs = outcome.outputs !== null && Object.keys(outcome.outputs).length > 0 ? outcome.outputs : null;
  const bytes = outputs === null ? 0 : utf8Bytes(JSON.stringify(outputs));
  if (bytes > ITEM_OUTPUTS_JSON_BYTES_MAX) {
    return settleFailure(
      facts,
      `outputs_too_large: ${bytes} bytes, the limit is ${ITEM_OUTPUTS_JSON_BYTES_MAX}`,
      "failed",
    );
  }
  return {
    ...BLANK,
    ordinal: facts.ordinal,
    status: "completed",
    result: boundItemText(outcome.result.toWellFormed(), facts.resultCharsMax),
    usage: outcome.usage,
    outputs,
    event: { attempt: facts.attempts + 1, kind: "completed" },
  };
}

function settleFailure(
  facts: Pick<AttemptFacts, "ordinal" | "attempts" | "maxAttempts">,
  error: string,
  kind: "failed" | "lease_expired",
): ItemSettlement {
  const attempt = facts.attempts + 1;
  return {
    ...BLANK,
    ordinal: facts.ordinal,
    status: attempt < facts.maxAttempts ? "pending" : "failed",
    attemptsSpent: 1,
    error: boundItemText(error.toWellFormed(), ITEM_ERROR_CHARS_MAX),
    event: { attempt, kind },
  };
}

/** Bytes of well-formed text as UTF-8. */
function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return bytes;
}
