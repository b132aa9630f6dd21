/**
 * An error object that a provider sent, as a `ModelFailure`: inside a 200 stream, or as the body of a refusal.
 * Owns reading the shapes providers and proxies use; what an error means is `domain/model-errors`' business.
 */
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import { ModelFailure } from "./model.ts";
import { isPlainObject, parseObject } from "./request-rules.ts";

/** Long enough for any provider's sentence; a failure's text is shown and logged. */
const ERROR_TEXT_CHARS_MAX = 500;

/** `{ message, code }`, the same as JSON text or inside another `error`, a bare string, or whatever a proxy put there. */
export function toStreamError(given: unknown): ModelFailure {
  const error = typeof given === "string" ? (parseObject(given) ?? given) : given;
  if (isPlainObject(error) && error.error) return toStreamError(error.error);
  const fields = isPlainObject(error) ? error : { message: error };
  const text = typeof fields.message === "string" ? fields.message : JSON.stringify(error);
  const status = [fields.status, fields.code].map(Number).find((code) => code >= 400 && code <= 599);
  return new ModelFailure("stream_error", UTF16_UNITS.first(text, ERROR_TEXT_CHARS_MAX), {
    status,
    code: errorCodeOf(error),
  });
}

/** The provider's own word for an error object: its `code`, else its `type`; numbers are statuses. */
export function errorCodeOf(error: unknown): string | undefined {
  if (!isPlainObject(error)) return undefined;
  return [error.code, error.type].find(
    (code): code is string => typeof code === "string" && /^[A-Za-z][\w.-]{0,99}$/.test(code),
  );
}
