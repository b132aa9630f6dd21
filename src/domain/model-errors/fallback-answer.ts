/**
 * The answer that stands in for a failed model call: its mark, its fields and the words people read.
 * Other programs look for the mark and the `error_*` fields by name. The mark alone says that the call failed; nobody
 * reads that from the text (R88).
 */
import { CODE_POINTS } from "../shared/cut-text.ts";
import type { ModelErrorReason } from "./classify-model-error.ts";

/** Set on the answer; only on a run's own or a child's last answer does it mean anything. */
export const ERROR_FALLBACK_KEY = "deerflow_error_fallback";

/** Enough for the provider's words and the beginning of a broken answer. */
export const ERROR_DETAIL_CHARS_MAX = 2_000;

export type FallbackReason = ModelErrorReason | "circuit_open";

/** One model of the call that gave no answer. */
export interface FailedModel {
  readonly model: string;
  readonly type: string;
  readonly reason: FallbackReason;
  readonly isStreamDrop: boolean;
  readonly message: string;
  /** What a broken stream had said; context for people, never an answer. */
  readonly partialText: string;
}

export interface FallbackAnswer {
  readonly text: string;
  readonly kwargs: Readonly<Record<string, unknown>>;
}

/** The first is the model that was asked; the others stood in for it and failed as well. */
export function toFallbackAnswer([asked, ...others]: readonly [FailedModel, ...FailedModel[]]): FallbackAnswer {
  const detail = [
    asked.message,
    ...others.map((each) => `Fallback model '${each.model}': ${each.message}`),
    ...[asked, ...others].flatMap(({ partialText: said }) => (said.trim() === "" ? [] : [`${PARTIAL_HEAD}\n${said}`])),
  ].join("\n");
  return {
    text: asked.isStreamDrop ? STREAM_DROP_TEXT : TEXTS[asked.reason],
    kwargs: {
      [ERROR_FALLBACK_KEY]: true,
      error_type: asked.type,
      error_reason: asked.reason,
      error_detail: CODE_POINTS.first(detail, ERROR_DETAIL_CHARS_MAX),
    },
  };
}

const PARTIAL_HEAD = "What the broken stream had said, not an answer:";

const STREAM_DROP_TEXT =
  "The model's answer broke off before it was complete. Split the work into smaller parts, then try again.";

const TEXTS: Readonly<Record<FallbackReason, string>> = {
  quota: "The model provider refused the request: the account's quota or balance is used up. Check its billing.",
  auth: "The model provider refused the credentials it was given, or what they may do. Check the provider's API key.",
  burst_rate: "The model provider limits how fast requests may increase. Wait a little, then try again.",
  transient: "The model provider could not be reached or failed, also when it was tried again. Try again later.",
  busy: "The model provider is busy, also when it was tried again. Try again later.",
  generic: "The model provider refused the request. Sending the same again will not help.",
  circuit_open:
    "The model provider failed several times in a row and is left alone for a short while. Try again later.",
};
