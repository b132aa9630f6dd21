/**
 * What the normalisers of all providers' streams share: the port an exchange drives, reading an event, the bound on one
 * answer, and what counts as a number of tokens.
 * A normaliser is pure, events in, events out, and belongs to one exchange.
 */
import { ModelFailure } from "./model.ts";
import { isPlainObject, parseObject } from "./request-rules.ts";
import { toStreamError } from "./stream-error.ts";

export type StreamEvent = Record<string, unknown>;

export interface StreamNormaliser {
  /** With a finish reason the answer is whole, whatever the connection does next. */
  readonly isFinished: boolean;
  /** A call has begun; it is given whole, at the end. */
  readonly hasCalls: boolean;
  /** The data of one event. Throws `ModelFailure` for an error inside the stream. */
  push(data: string): readonly StreamEvent[];
  /** The provider's `[DONE]` mark came; absent where the mark says nothing that a finish reason did not. */
  markDone?(): void;
  /** What is left when the stream has ended. Throws `ModelFailure` "truncated" when the answer is not whole. */
  finish(): readonly StreamEvent[];
}

/** A million tokens: more than any model writes at once, and an endless answer would fill the isolate. */
export const ANSWER_CHARS_MAX = 4_000_000;

/** Counts what is kept of one answer. */
export class AnswerSize {
  #chars = 0;

  add(chars: number): void {
    this.#chars += chars;
    if (this.#chars > ANSWER_CHARS_MAX) {
      throw new ModelFailure("stream_error", `an answer of more than ${ANSWER_CHARS_MAX} characters`);
    }
  }
}

/** Throws `ModelFailure` for what is no JSON object and for an error object. */
export function parseStreamEvent(data: string): StreamEvent {
  const event = parseObject(data);
  if (!event) throw new ModelFailure("stream_error", "the provider sent an event that is not a JSON object");
  if (event.error !== undefined && event.error !== null) throw toStreamError(event.error);
  return event;
}

export function objectOf(value: unknown): StreamEvent {
  return isPlainObject(value) ? value : {};
}

export function isTokenCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
