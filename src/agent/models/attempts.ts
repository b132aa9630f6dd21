/**
 * Attempts at one model turn: a failed or empty answer is tried again, with a bounded wait. Owns the loop; which
 * failures are worth another attempt and how long to wait is `domain/model-errors`' business, what a turn without an
 * answer means is the caller's.
 * The text of an abandoned attempt is not part of any answer: the next attempt has a message id of its own. A model whose
 * broken answers are gone on with keeps text and id; a call that had begun is never gone on with.
 */
import type { AIMessage } from "@langchain/core/messages";
import {
  classifyModelError,
  isRetriable,
  type ModelErrorReason,
} from "../../domain/model-errors/classify-model-error.ts";
import { attemptsFor, type RetryPolicy, retryWaitMs } from "../../domain/model-errors/retry-policy.ts";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import { type BegunAnswer, type BrokenAnswer, ModelFailure } from "./model.ts";
import { type Sleep, sleepFor } from "./sleep.ts";
import { joinAnswer, type StreamBreak, type StreamBreakAction, StreamBreaks } from "./stream-breaks.ts";

export interface AttemptOptions {
  readonly policy: RetryPolicy;
  readonly sleep?: Sleep;
  readonly random: () => number;
  /** What is done after an answer that broke off: asked for again, or gone on with. */
  readonly streamBreak?: StreamBreakAction | undefined;
  /** Told before each wait; what a `llm_retry` event carries. */
  readonly onRetry?: (retry: ModelRetry) => void;
}

export interface ModelRetry {
  /** The attempt that failed, from 1. */
  readonly attempt: number;
  /** How many there are in all after a failure of this kind. */
  readonly attempts: number;
  readonly waitMs: number;
  readonly reason: ModelErrorReason;
  readonly failure: ModelFailure;
  /** Set when the answer had begun. */
  readonly broke: StreamBreak | undefined;
}

/** The last failure of a turn, and what the last broken stream of any attempt had said. */
export interface FailedTurn {
  readonly failure: ModelFailure;
  readonly reason: ModelErrorReason;
  readonly partialText: string;
  readonly breaks: StreamBreaks;
}

/** Throws only what is no `ModelFailure`, and the signal's reason once it is aborted; an abort ends a wait at once. */
export async function withAttempts(
  attemptOnce: (begun: BegunAnswer | undefined) => Promise<AIMessage>,
  signal: AbortSignal | undefined,
  options: AttemptOptions,
): Promise<Result<AIMessage, FailedTurn>> {
  const { policy, sleep = sleepFor } = options;
  let previousMs: number | undefined;
  let partialText = "";
  let begun: BegunAnswer | undefined;
  const breaks = new StreamBreaks();
  for (let attempt = 1; ; attempt += 1) {
    try {
      return ok(breaks.recordOn(joinAnswer(begun, await attemptOnce(begun))));
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof ModelFailure)) throw error;
      const failure = error;
      const reason = classifyModelError(failure);
      partialText = failure.partialText || partialText;
      const { broken } = failure;
      if (broken !== undefined) begun = options.streamBreak === "continue" ? toBegun(begun, broken) : undefined;
      // Each attempt that goes on comes further; one that begins anew breaks at the same place.
      const attempts = begun ? attemptsOf(reason, policy) : attemptsFor(reason, failure, policy.attempts);
      const action = attempt >= attempts ? "give_up" : begun ? "continue" : "retry";
      const broke = broken && breaks.add(broken, { attempt, reason: failure.reason, action });
      if (action === "give_up") return err({ failure, reason, partialText, breaks });
      const { retryAfterMs } = failure;
      const waitMs = retryWaitMs({ reason, retryAfterMs, previousMs, random: options.random() }, policy);
      options.onRetry?.({ attempt, attempts, waitMs, reason, failure, broke });
      await sleep(waitMs, signal);
      previousMs = waitMs;
    }
  }
}

/** With all it has said, over all requests; `undefined` where there is nothing to go on with. */
function toBegun(before: BegunAnswer | undefined, broken: BrokenAnswer): BegunAnswer | undefined {
  if (broken.hasCalls) return undefined;
  const text = (before?.text ?? "") + broken.text;
  return text.trim() === "" ? undefined : { messageId: before?.messageId ?? broken.messageId, text };
}

function attemptsOf(reason: ModelErrorReason, { attempts }: RetryPolicy): number {
  return isRetriable(reason) ? attempts : 1;
}
