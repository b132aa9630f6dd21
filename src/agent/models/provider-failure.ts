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

const NUMBER = /^\d+(\.\d+)?$/;
/** All three forms of an HTTP date begin with a day's name; `Date.parse` reads nearly anything. */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/;

/**
 * `retry-after-ms`, or `Retry-After` as seconds or an HTTP date; unbounded here. What is neither, and a date that has
 * passed, says nothing: clocks differ, and a provider that fails would be asked again at once.
 */
export function readRetryAfterMs(headers: Headers, now: number): number | undefined {
  const ms = headers.get("retry-after-ms")?.trim() ?? "";
  if (NUMBER.test(ms)) return Number(ms);
  const value = headers.get("retry-after")?.trim() ?? "";
  if (NUMBER.test(value)) return Number(value) * 1_000;
  const wait = HTTP_DATE.test(value) ? Date.parse(value) - now : Number.NaN;
  return wait > 0 ? wait : undefined;
}
