/**
 * Keeps what a broken stream had said beside its failure: context for people, never an answer.
 */
import { CODE_POINTS } from "../../domain/shared/cut-text.ts";
import { type BrokenAnswer, ModelFailure } from "./model.ts";

/** Enough to see how far an answer came; the failure is held while the turn waits for its next attempt. */
const PARTIAL_TEXT_CHARS_MAX = 1_000;

/** `error` itself unless it is a `ModelFailure` and the answer had begun. */
export function withPartialText(error: unknown, said: string, broken?: BrokenAnswer): unknown {
  if (!(error instanceof ModelFailure) || (said.trim() === "" && broken === undefined)) return error;
  const { reason, message, status, code, retryAfterMs } = error;
  const partialText = CODE_POINTS.first(said, PARTIAL_TEXT_CHARS_MAX);
  return new ModelFailure(reason, message, { status, code, retryAfterMs, partialText, broken, cause: error.cause });
}
