/**
 * Attempts at one model turn: a failed or empty answer is tried again, with a bounded wait. Owns which failures are worth
 * another attempt and how long to wait; what a turn without an answer means is the caller's (R98).
 * The text of an abandoned attempt is not part of any answer: the next attempt has a message id of its own.
 */
import type { AIMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { unreachable } from "../../domain/shared/assert.ts";
import { type ChatModel, ModelFailure, type ModelRequest } from "./model.ts";
import { type Sleep, sleepFor } from "./sleep.ts";

/** The third failure in a row is rarely the last one: more attempts only hold a slot. */
export const MODEL_ATTEMPTS = 3;

export const RETRY_BASE_MS = 1_000;
export const RETRY_CAP_MS = 8_000;

/** A provider may ask for an hour; a run that holds a slot obeys a minute of it at most. */
export const RETRY_AFTER_MAX_MS = 60_000;

/** Statuses that pass by themselves, all of 5xx besides. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([408, 409, 425, 429]);

export interface AttemptOptions {
  readonly attempts?: number;
  readonly sleep?: Sleep;
  readonly random: () => number;
  /** Told before each wait; what a `llm_retry` event carries. */
  readonly onRetry?: (retry: ModelRetry) => void;
}

export interface ModelRetry {
  /** The attempt that failed, from 1. */
  readonly attempt: number;
  readonly attempts: number;
  readonly waitMs: number;
  readonly failure: ModelFailure;
}

/** Throws the last `ModelFailure`, or at once whatever another attempt cannot change. An abort ends a wait at once. */
export function generateWithAttempts(
  model: ChatModel,
  request: ModelRequest,
  config: RunnableConfig,
  options: AttemptOptions,
): Promise<AIMessage> {
  return withAttempts(() => model.generate(request, config), config.signal, options);
}

/** As `generateWithAttempts`, over whatever makes one attempt. */
export async function withAttempts(
  attemptOnce: () => Promise<AIMessage>,
  signal: AbortSignal | undefined,
  options: AttemptOptions,
): Promise<AIMessage> {
  const { attempts = MODEL_ATTEMPTS, sleep = sleepFor } = options;
  let previousMs = RETRY_BASE_MS;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await attemptOnce();
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof ModelFailure) || attempt >= attempts || !isRetryable(error)) throw error;
      const waitMs = retryWaitMs(error, previousMs, options.random);
      options.onRetry?.({ attempt, attempts, waitMs, failure: error });
      await sleep(waitMs, signal);
      previousMs = waitMs;
    }
  }
}

export function isRetryable(failure: ModelFailure): boolean {
  switch (failure.reason) {
    case "empty":
    case "truncated":
    case "idle":
      return true;
    case "stream_error":
    case "provider":
      // Without a status there was no answer at all, or an error without a number in the stream: both pass.
      return failure.status === undefined || failure.status >= 500 || RETRYABLE_STATUSES.has(failure.status);
    default:
      return unreachable(failure.reason);
  }
}

/** Decorrelated jitter: between the base and three times the last wait, capped; a provider's wish, bounded, wins. */
export function retryWaitMs(failure: ModelFailure, previousMs: number, random: () => number): number {
  if (failure.retryAfterMs !== undefined) return Math.min(failure.retryAfterMs, RETRY_AFTER_MAX_MS);
  const ceiling = Math.min(RETRY_CAP_MS, Math.max(RETRY_BASE_MS, previousMs * 3));
  return Math.round(RETRY_BASE_MS + random() * (ceiling - RETRY_BASE_MS));
}
