/**
 * What the Workers AI binding throws, as a `ModelFailure`: the internal code in front of its words says what an HTTP
 * status would (developers.cloudflare.com/workers-ai/platform/errors). A binding's error has no status of its own.
 */
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import { ModelFailure } from "./model.ts";

/** Internal code → HTTP status, as documented. */
const STATUSES: Readonly<Record<number, number>> = {
  3003: 400,
  3006: 413,
  3007: 408,
  3008: 408,
  3023: 403,
  3036: 429,
  3039: 400,
  3040: 429,
  3041: 403,
  3042: 404,
  5004: 400,
  5005: 405,
  5007: 400,
  5016: 403,
  5018: 403,
  5019: 405,
};

/** The day's free allocation is used up: a 429 that no wait of ours changes, so it is named as an empty account is. */
const ALLOCATION_USED_UP = 3036;

/** `5007: No such model`, also behind the name of the error's class. */
const CODE_PATTERN = /^(?:[A-Za-z]+Error:\s*)*(\d{4}):/;

/** Enough for the sentence; some errors repeat the whole request. */
const ERROR_TEXT_CHARS_MAX = 500;

/** An unknown code of the 5000s is a refusal of what was sent; without any code nothing is known but that it failed. */
export function toWorkersAiFailure(error: unknown): ModelFailure {
  const text = error instanceof Error ? error.message : String(error);
  const code = codeOf(error, text);
  const status = code === undefined ? undefined : (STATUSES[code] ?? (code >= 5_000 && code < 6_000 ? 400 : undefined));
  const word = code === ALLOCATION_USED_UP ? "insufficient_quota" : code && `workers_ai_${code}`;
  return new ModelFailure("provider", `Workers AI: ${UTF16_UNITS.first(text, ERROR_TEXT_CHARS_MAX)}`, {
    status,
    code: word || undefined,
    cause: error,
  });
}

function codeOf(error: unknown, text: string): number | undefined {
  const given = (error as { code?: unknown } | null)?.code;
  if (typeof given === "number" && given >= 1_000 && given <= 9_999) return given;
  const [, found] = CODE_PATTERN.exec(text) ?? [];
  return found === undefined ? undefined : Number(found);
}
