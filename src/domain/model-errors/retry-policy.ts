/**
 * How often a model call is tried and how long to wait in between (delegation-behaviour 3.5). Pure; owns the bounds.
 */
import { isRetriable, isStreamDrop, type ModelErrorFacts, type ModelErrorReason } from "./classify-model-error.ts";

/** A provider may ask for an hour; a run that holds a slot obeys a minute of it at most. */
export const RETRY_AFTER_MAX_MS = 60_000;

/** A burst limit and a stream that breaks off rarely change at the third try; more only holds a slot. */
export const STUBBORN_ATTEMPTS_MAX = 2;

export interface RetryPolicy {
  readonly attempts: number;
  readonly baseMs: number;
  readonly capMs: number;
  readonly burstBaseMs: number;
}

/** The section `llm_call` of the configuration, as this module reads it. */
export interface RetrySettings {
  readonly retry_max_attempts: number;
  readonly retry_base_delay_ms: number;
  readonly retry_cap_delay_ms: number;
  readonly burst_retry_base_delay_ms: number;
}

export function toRetryPolicy(settings: RetrySettings): RetryPolicy {
  return {
    attempts: settings.retry_max_attempts,
    baseMs: settings.retry_base_delay_ms,
    capMs: settings.retry_cap_delay_ms,
    burstBaseMs: settings.burst_retry_base_delay_ms,
  };
}

/** Attempts that this failure leaves in all, the failed ones included. */
export function attemptsFor(reason: ModelErrorReason, facts: ModelErrorFacts, configured: number): number {
  if (!isRetriable(reason)) return 1;
  const isStubborn = reason === "burst_rate" || isStreamDrop(facts);
  return isStubborn ? Math.min(configured, STUBBORN_ATTEMPTS_MAX) : configured;
}

export interface WaitFacts {
  readonly reason: ModelErrorReason;
  /** What the provider asked for; wins, up to its bound. */
  readonly retryAfterMs?: number | undefined;
  /** The last wait of this call; absent before the first. */
  readonly previousMs?: number | undefined;
  /** In [0, 1). */
  readonly random: number;
}

/** Decorrelated jitter: between the base and three times the last wait, capped; a base above the cap is the cap. */
export function retryWaitMs({ reason, retryAfterMs, previousMs, random }: WaitFacts, policy: RetryPolicy): number {
  if (retryAfterMs !== undefined) return Math.min(Math.max(0, retryAfterMs), RETRY_AFTER_MAX_MS);
  const base = Math.min(policy.capMs, reason === "burst_rate" ? policy.burstBaseMs : policy.baseMs);
  const ceiling = Math.min(policy.capMs, Math.max(base, (previousMs ?? base) * 3));
  return Math.round(base + random * (ceiling - base));
}
