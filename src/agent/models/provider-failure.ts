/**
 * An HTTP error answer as a `ModelFailure`: status, the provider's words (bounded), and how long it asks us to wait.
 */
import { ModelFailure } from "./model.ts";

/** Error bodies are sentences; some proxies send whole pages. */
export const ERROR_BODY_CHARS_MAX = 1_000;

export async function toProviderFailure(response: Response, now: number): Promise<ModelFailure> {
  const text = await response.text().catch(() => "");
  const retryAfterMs = readRetryAfterMs(response.headers, now);
  return new ModelFailure("provider", `the provider answered ${response.status}: ${messageOf(text)}`, {
    status: response.status,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

function messageOf(text: string): string {
  const found = /"message"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(text.slice(0, ERROR_BODY_CHARS_MAX));
  return found?.[1] ? (JSON.parse(found[1]) as string) : text.slice(0, ERROR_BODY_CHARS_MAX);
}

/** `retry-after-ms`, or `Retry-After` as seconds or an HTTP date; unbounded here, never negative. */
export function readRetryAfterMs(headers: Headers, now: number): number | undefined {
  const ms = Number(headers.get("retry-after-ms") ?? Number.NaN);
  if (Number.isFinite(ms)) return Math.max(0, ms);
  const value = headers.get("retry-after");
  if (value === null || value.trim() === "") return undefined;
  const seconds = Number(value);
  const wait = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(value) - now;
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
}
