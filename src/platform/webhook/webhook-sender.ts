/**
 * Makes one attempt at a delivery over HTTP. Owns the secret, the check of targets and the request; when an attempt is
 * made, and what its outcome means, is the caller's.
 * Invariants: every address that is asked was checked just before, redirects included; nothing of the answer but its status
 * and a redirect's target is looked at; an attempt ends within its timeout; neither secret nor URL is ever logged.
 */
import { type AttemptOutcome, outcomeOfStatus } from "../../domain/webhook/delivery.ts";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import type { ApiRefusal } from "../../protocol/errors.ts";
import { signWebhook } from "./sign-webhook.ts";
import { checkWebhookTarget } from "./webhook-target.ts";

/** A receiver that moved has one new address; more is a loop. */
export const WEBHOOK_REDIRECTS_MAX = 3;

const SIGNATURE_HEADER = "deputy-signature";
const DELIVERY_HEADER = "deputy-delivery";

export interface WebhookRequest {
  readonly url: string;
  /** The same at every attempt: a receiver knows a repeat by it. */
  readonly deliveryId: string;
  readonly body: string;
  readonly now: number;
  /** Whose connections it counts among. */
  readonly scope: string;
}

export interface WebhookSender {
  /** Whether a run may ask for this delivery. */
  check(url: string): Result<null, ApiRefusal>;
  /** Never rejects. */
  send(request: WebhookRequest): Promise<AttemptOutcome>;
}

export interface WebhookSenderOptions {
  /** `WEBHOOK_SECRET`; without it no delivery is accepted, since nobody could trust it. */
  readonly secret: string | undefined;
  readonly allowedHosts: readonly string[];
  readonly timeoutMs: number;
  /** `fetch`, as a request of that scope may make it. */
  readonly fetchIn: (scope: string) => typeof fetch;
}

const NO_SECRET: ApiRefusal = {
  code: "unsupported_option",
  message: "Option webhook is not supported: this deployment has no WEBHOOK_SECRET to sign deliveries with.",
  details: { field: "webhook" },
};

/** Where nothing is configured. */
export const NO_WEBHOOKS: WebhookSender = {
  check: () => err(NO_SECRET),
  send: async () => ({ kind: "failed", reason: "no_secret", isFinal: false }),
};

export function webhookSender({ secret = "", allowedHosts, timeoutMs, fetchIn }: WebhookSenderOptions): WebhookSender {
  return {
    check(url) {
      if (secret === "") return err(NO_SECRET);
      const target = checkWebhookTarget(url, allowedHosts);
      if (target.ok) return ok(null);
      return err({ code: "invalid_request", message: `webhook: ${target.error}`, details: { path: ["webhook"] } });
    },
    async send(request) {
      if (secret === "") return { kind: "failed", reason: "no_secret", isFinal: false };
      const signal = AbortSignal.timeout(timeoutMs);
      try {
        const send = fetchIn(request.scope);
        return await post({ request, allowedHosts, fetch: send, signal, headers: headersOf(secret, request) });
      } catch {
        // What fetch says of it may name the address.
        return { kind: "failed", reason: signal.aborted ? "timeout" : "unreachable", isFinal: false };
      }
    },
  };
}

function headersOf(secret: string, { body, deliveryId, now }: WebhookRequest): Record<string, string> {
  return {
    "content-type": "application/json",
    "user-agent": "deputy-webhook",
    [DELIVERY_HEADER]: deliveryId,
    [SIGNATURE_HEADER]: signWebhook(secret, body, now),
  };
}

interface Posting {
  readonly request: WebhookRequest;
  readonly allowedHosts: readonly string[];
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
  readonly headers: Record<string, string>;
}

async function post({ request, allowedHosts, fetch: send, signal, headers }: Posting): Promise<AttemptOutcome> {
  let url = request.url;
  for (let redirects = 0; redirects <= WEBHOOK_REDIRECTS_MAX; redirects += 1) {
    const target = checkWebhookTarget(url, allowedHosts);
    if (!target.ok) return { kind: "failed", reason: redirects === 0 ? "refused" : "redirect_refused", isFinal: true };
    const init = { method: "POST", headers, body: request.body, redirect: "manual", signal } as const;
    const response = await send(target.value.href, init);
    const next = redirectOf(response, target.value);
    // Nobody reads it; left alone it would hold its connection.
    await response.body?.cancel().catch(() => undefined);
    if (next === undefined) return outcomeOfStatus(response.status);
    url = next;
  }
  return { kind: "failed", reason: "too_many_redirects", isFinal: false };
}

/** Of those that keep the method: the others ask for a GET, which carries nothing. */
function redirectOf(response: Response, from: URL): string | undefined {
  if (response.status !== 307 && response.status !== 308) return undefined;
  const location = response.headers.get("location");
  if (location === null) return undefined;
  try {
    return new URL(location, from).href;
  } catch {
    return undefined;
  }
}
