/**
 * What becomes of a delivery: when it is tried, what an answer means, when it is given up. Pure; the row, the alarm and
 * the request are the object's. Invariants:
 * - an attempt is stored before it is made, with the time of the next one, so a crash in between costs an attempt and
 *   never the delivery: at least once;
 * - the number of attempts and every wait between them are bounded.
 */

/** Longest wait between two attempts. */
export const WEBHOOK_RETRY_DELAY_MS_MAX = 3_600_000;

/** Each wait is so many times the one before it. */
const BACKOFF_FACTOR = 3;

export interface DeliveryPolicy {
  readonly attemptsMax: number;
  readonly retryBaseMs: number;
  /** How long one attempt may take. */
  readonly timeoutMs: number;
}

/** A delivery that waits: one a run. */
export interface PendingDelivery {
  readonly runId: string;
  readonly url: string;
  /** Attempts that were begun. */
  readonly attempts: number;
  /** When the next one is due, milliseconds since the epoch. */
  readonly dueAt: number;
}

/** What an attempt came to. A final failure is not tried again: another attempt would be refused for the same reason. */
export type AttemptOutcome =
  | { readonly kind: "delivered"; readonly status: number }
  | { readonly kind: "failed"; readonly reason: string; readonly isFinal: boolean };

export type DeliveryDecision =
  | { readonly kind: "done"; readonly status: number }
  | { readonly kind: "retry"; readonly next: PendingDelivery; readonly reason: string }
  | { readonly kind: "given_up"; readonly reason: string };

/** The delivery as its first attempt begins: it is made at once, by whoever stored it. */
export function firstAttempt(
  run: { runId: string; url: string },
  now: number,
  policy: DeliveryPolicy,
): PendingDelivery {
  return beginAttempt({ ...run, attempts: 0, dueAt: now }, now, policy);
}

/** One more attempt begins. If nobody lives to see its end, the next one is due after it would have ended. */
export function beginAttempt(delivery: PendingDelivery, now: number, policy: DeliveryPolicy): PendingDelivery {
  const attempts = delivery.attempts + 1;
  return { ...delivery, attempts, dueAt: now + policy.timeoutMs + retryDelayMs(attempts, policy) };
}

export function decideDelivery(
  delivery: PendingDelivery,
  outcome: AttemptOutcome,
  now: number,
  policy: DeliveryPolicy,
): DeliveryDecision {
  if (outcome.kind === "delivered") return { kind: "done", status: outcome.status };
  const { reason } = outcome;
  if (outcome.isFinal || isSpent(delivery, policy)) return { kind: "given_up", reason };
  const dueAt = now + retryDelayMs(delivery.attempts, policy);
  return { kind: "retry", reason, next: { ...delivery, dueAt } };
}

/** No attempt is left: the last one was begun, and nobody saw its end. */
export function isSpent(delivery: PendingDelivery, policy: DeliveryPolicy): boolean {
  return delivery.attempts >= policy.attemptsMax;
}

/** What an HTTP status means. 410 is the receiver's word that nobody will ever listen there. */
export function outcomeOfStatus(status: number): AttemptOutcome {
  if (status >= 200 && status < 300) return { kind: "delivered", status };
  return { kind: "failed", reason: `status_${status}`, isFinal: status === 410 };
}

/** After the `attempts`-th attempt: the base, then three times as long each time, up to an hour. */
function retryDelayMs(attempts: number, { retryBaseMs }: DeliveryPolicy): number {
  return Math.min(retryBaseMs * BACKOFF_FACTOR ** (attempts - 1), WEBHOOK_RETRY_DELAY_MS_MAX);
}
