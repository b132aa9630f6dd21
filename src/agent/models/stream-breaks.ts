/**
 * What is kept of answers whose stream broke: their text, beside the answer that came instead, and the tokens of their
 * requests. Owns the names under which a message carries both.
 */
import type { AIMessage } from "@langchain/core/messages";
import type { ModelFailureReason } from "../../domain/model-errors/classify-model-error.ts";
import { CODE_POINTS } from "../../domain/shared/cut-text.ts";
import { copyMessage } from "../thread-state/message-forms.ts";
import { BROKEN_USAGE_KEY, type BrokenUsage } from "./answer-usage.ts";
import type { BegunAnswer, BrokenAnswer } from "./model.ts";

/** In `response_metadata`: other programs read it. */
export const STREAM_BREAKS_KEY = "deputy_stream_breaks";

/** Enough to see how far an answer came. */
const KEPT_TEXT_CHARS_MAX = 1_000;

export type StreamBreakAction = "retry" | "continue";

/** PERSISTED with the message. */
export interface StreamBreak {
  readonly attempt: number;
  readonly reason: ModelFailureReason;
  /** What was done next; `give_up` once the attempts were used up. */
  readonly action: StreamBreakAction | "give_up";
  /** The beginning of what it had said, and how much that was. */
  readonly partial_text: string;
  readonly characters: number;
}

/** The breaks of one turn. */
export class StreamBreaks {
  readonly #breaks: StreamBreak[] = [];
  #usage: BrokenUsage | undefined;

  add(
    broken: BrokenAnswer,
    { attempt, reason, action }: Pick<StreamBreak, "attempt" | "reason" | "action">,
  ): StreamBreak {
    const { text, usage } = broken;
    const told = {
      attempt,
      reason,
      action,
      partial_text: CODE_POINTS.first(text, KEPT_TEXT_CHARS_MAX),
      characters: text.length,
    };
    this.#breaks.push(told);
    this.#usage = addUsage(this.#usage, { requests: 1, ...usage });
    return told;
  }

  /** `message`, with what broke before it: before what it carries already, which is another model's. */
  recordOn(message: AIMessage): AIMessage {
    const { response_metadata: said, additional_kwargs: kept } = message;
    if (this.#usage === undefined) return message;
    const others = (said[STREAM_BREAKS_KEY] ?? []) as readonly StreamBreak[];
    const usage = kept[BROKEN_USAGE_KEY] as BrokenUsage | undefined;
    return copyMessage(message, {
      response_metadata: { ...said, [STREAM_BREAKS_KEY]: [...this.#breaks, ...others] },
      additional_kwargs: { ...kept, [BROKEN_USAGE_KEY]: addUsage(usage, this.#usage) },
    }) as AIMessage;
  }
}

/** The one answer that a broken one and its continuation are: under the id its first words were streamed with. */
export function joinAnswer(begun: BegunAnswer | undefined, answer: AIMessage): AIMessage {
  if (begun === undefined) return answer;
  return copyMessage(answer, { id: begun.messageId, content: begun.text + answer.text }) as AIMessage;
}

function addUsage(left: BrokenUsage | undefined, right: BrokenUsage): BrokenUsage {
  if (left === undefined) return right;
  return {
    requests: left.requests + right.requests,
    input_tokens: left.input_tokens + right.input_tokens,
    output_tokens: left.output_tokens + right.output_tokens,
    total_tokens: left.total_tokens + right.total_tokens,
  };
}
