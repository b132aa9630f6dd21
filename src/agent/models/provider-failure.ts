/**
 * An answer that is no stream as a `ModelFailure`: status, the provider's words (bounded), and how long it asks us to wait.
 */
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import { ModelFailure } from "./model.ts";
import { isPlainObject, parseObject } from "./request-rules.ts";
import { errorCodeOf, toStreamError } from "./stream-error.ts";

/** Error bodies are sentences; some proxies send whole pages. */
export const ERROR_BODY_BYTES_MAX = 4_096;

/** What is shown of a body that is not an error object. */
const ERROR_TEXT_CHARS_MAX = 500;

export async function toProviderFailure(response: Response, now: number): Promise<ModelFailure> {
  const text = await readStart(response).catch(() => "");
  const retryAfterMs = readRetryAfterMs(response.headers, now);
  const error = parseObject(text)?.error;
  return new ModelFailure("provider", `the provider answered ${response.status}: ${messageOf(error, text)}`, {
    status: response.status,
    code: errorCodeOf(error),
    retryAfterMs,
  });
}

/** A 200 that is not a stream: a proxy's error object, or a provider that ignored `stream`. */
export async function toUnstreamedFailure(response: Response): Promise<ModelFailure> {
  const body = parseObject(await readStart(response));
  if (body?.error) return toStreamError(body.error);
  return new ModelFailure("stream_error", "the provider answered 200 without an event stream");
}

function messageOf(error: unknown, text: string): string {
  return isPlainObject(error) && typeof error.message === "string"
    ? error.message
    : UTF16_UNITS.first(text, ERROR_TEXT_CHARS_MAX);
}

/** The first bytes of a body; the rest is cancelled unread. */
async function readStart(response: Response): Promise<string> {
  if (!response.body) return "";
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    bytes += chunk.byteLength;
    if (bytes >= ERROR_BODY_BYTES_MAX) break;
  }
  return text;
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
