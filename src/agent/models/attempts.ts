/**
 * Attempts at one model turn: a failed or empty answer is tried again, with a bounded wait. Owns the loop; which
 * failures are worth another attempt and how long to wait is `domain/model-errors`' business, what a turn without an
 * answer means is the caller's.
 * The text of an abandoned attempt is not part of any answer: the next attempt has a message id of its own.
 */
import type { AIMessage } from "@langchain/core/messages";
import { classifyModelError, type ModelErrorReason } from "../../domain/model-errors/classify-model-error.ts";
import { attemptsFor, type RetryPolicy, retryWaitMs } from "../../domain/model-errors/retry-policy.ts";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import { ModelFailure } from "./model.ts";
import { type Sleep, sleepFor } from "./sleep.ts";

export interface AttemptOptions {
  readonly policy: RetryPolicy;
  readonly sleep?: Sleep;
  readonly random: () => number;
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
}

/** The last failure of a turn, and what the last broken stream of any attempt had said. */
export interface FailedTurn {
  readonly failure: ModelFailure;
  readonly reason: ModelErrorReason;
  readonly partialText: string;
}

/** Throws only what is no `ModelFailure`, and the signal's reason once it is aborted; an abort ends a wait at once. */
export async function withAttempts(
  attemptOnce: () => Promise<AIMessage>,
  signal: AbortSignal | undefined,
  options: AttemptOptions,
): Promise<Result<AIMessage, FailedTurn>> {
  const { policy, sleep = sleepFor } = options;
  let previousMs: number | undefined;
  let partialText = "";
  for (let attempt = 1; ; attempt += 1) {
    try {
      return ok(await attemptOnce());
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof ModelFailure)) throw error;
      const failure = error;
      const reason = classifyModelError(failure);
      partialText = failure.partialText || partialText;
      const attempts = attemptsFor(reason, failure, policy.attempts);
      if (attempt >= attempts) return err({ failure, reason, partialText });
      const { retryAfterMs } = failure;
      const waitMs = retryWaitMs({ reason, retryAfterMs, previousMs, random: options.random() }, policy);
      options.onRetry?.({ attempt, attempts, waitMs, reason, failure });
      await sleep(waitMs, signal);
      previousMs = waitMs;
    }
  }
}
