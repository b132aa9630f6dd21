/**
 * What the lead reads about a delegation (delegation-behaviour 1.8). Display only: status is never parsed from it.
 * Owns the wording and the bound of an inlined result.
 */
import { unreachable } from "../shared/assert.ts";
import { CODE_POINTS } from "../shared/cut-text.ts";
import { boundText } from "./bounded-text.ts";
import { assertContractValues, isBlank, type DelegationOutcome } from "./delegation-outcome.ts";
import type { SubagentStopReason } from "./status-contract.ts";

/** Keeps six results of a run within a large model's context; the whole result lies where the note says. */
export const RESULT_CHARS_MAX = 100_000;
/** A failure's text explains, it does not deliver. */
export const ERROR_CHARS_MAX = 8_192;

export const NO_RESPONSE_SENTINEL = "No response generated";

const CAP_LABELS: Record<SubagentStopReason, string> = {
  token_capped: "token budget",
  turn_capped: "turn budget",
  loop_capped: "repeated tool-call loop",
};

/** `elsewhere`: where the whole result was kept, when it is longer than the bound; undefined when it was not kept. */
export function toDelegationText(outcome: DelegationOutcome, elsewhere?: string): string {
  assertContractValues(outcome);
  const capped = outcome.stopReason === undefined ? "" : ` (capped: ${CAP_LABELS[outcome.stopReason]})`;
  const error = isBlank(outcome.error) ? "" : boundText(outcome.error ?? "", ERROR_CHARS_MAX);
  switch (outcome.status) {
    case "completed":
      return `Task Succeeded${capped}. Result: ${toInlinedResult(outcome.result ?? "", elsewhere)}`;
    case "failed":
      return error === "" ? `Task failed${capped}.` : `Task failed${capped}. Error: ${error}`;
    case "cancelled":
      return withError("Task cancelled by user.", error);
    case "timed_out":
      return withError("Task timed out.", error);
    case "polling_timed_out":
      return error === "" ? "Task polling timed out." : error;
    default:
      return unreachable(outcome.status);
  }
}

function withError(headline: string, error: string): string {
  return error === "" ? headline : `${headline} Error: ${error}`;
}

/** True when the result does not fit and should be kept elsewhere first. */
export function isResultCut(result: string): boolean {
  return CODE_POINTS.exceeds(result, RESULT_CHARS_MAX);
}

/** Room for the note inside the bound. */
const CUT_NOTE_CHARS = 300;

function toInlinedResult(result: string, elsewhere: string | undefined): string {
  if (!isResultCut(result)) return result;
  const rest = elsewhere === undefined ? "the whole text was not kept" : `the whole text is in ${elsewhere}`;
  const note = `\n[Result cut: its beginning and end are shown; ${rest}.]`;
  return boundText(result, RESULT_CHARS_MAX - CUT_NOTE_CHARS) + note;
}
