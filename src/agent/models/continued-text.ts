/**
 * Going on with an answer whose stream broke: what the model is sent, and its text without the part it says again.
 * Owns the joint. Pure.
 *
 * No provider promises to go on in the middle of a word: models repeat the last sentence, or begin anew. A part that is
 * said again is left out; an answer that begins anew and goes another way is refused, since no cut makes one text of two.
 */
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { type BegunAnswer, ModelFailure } from "./model.ts";

/** A shorter repetition may be chance, such as the same word twice. */
const OVERLAP_CHARS_MIN = 12;

/** How much of the end is looked for in what comes, which is held back while it may be a repetition. */
const OVERLAP_CHARS_MAX = 500;

/** From here on the same beginning is no chance: the model begins anew. */
const RESTART_CHARS_MIN = 64;

const GO_ON = [
  "<continue_answer>",
  "Your answer above was cut off by a broken connection. Go on exactly where it stops: repeat none of it and do not",
  "comment on this.",
  "</continue_answer>",
].join("\n");

/** Asked for, not prefilled: most models refuse a request that ends with words of their own. */
export function withBegunAnswer(messages: readonly BaseMessage[], begun: BegunAnswer | undefined): BaseMessage[] {
  if (begun === undefined) return [...messages];
  return [...messages, new AIMessage({ id: begun.messageId, content: begun.text }), new HumanMessage(GO_ON)];
}

/** The text of one request, as it comes; with `begun`, what follows that. */
export class ContinuedText {
  readonly #begun: string;
  #held = "";
  #isOpen: boolean;

  constructor(begun = "") {
    this.#begun = begun;
    this.#isOpen = begun === "";
  }

  /** What of it may be said now. */
  push(text: string): string {
    if (this.#isOpen || text === "") return text;
    this.#held += text;
    return this.#mayRepeat() ? "" : this.finish();
  }

  /** The rest, once no more comes. */
  finish(): string {
    const held = this.#held;
    if (this.#isOpen || held === "") return "";
    this.#isOpen = true;
    this.#held = "";
    if (held.startsWith(this.#begun)) return held.slice(this.#begun.length);
    if (sharedStart(held, this.#begun) >= RESTART_CHARS_MIN) {
      throw new ModelFailure("truncated", "asked to go on with a broken answer, the model began another one");
    }
    return held.slice(overlap(this.#begun, held));
  }

  /** So far it is the answer's beginning, or stands somewhere near its end: more of it may tell. */
  #mayRepeat(): boolean {
    return this.#begun.startsWith(this.#held) || this.#begun.slice(-OVERLAP_CHARS_MAX).includes(this.#held);
  }
}

/** How many characters at the start of `given` are the end of `begun`. */
function overlap(begun: string, given: string): number {
  for (let size = Math.min(begun.length, given.length, OVERLAP_CHARS_MAX); size >= OVERLAP_CHARS_MIN; size -= 1) {
    if (begun.endsWith(given.slice(0, size))) return size;
  }
  return 0;
}

function sharedStart(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  let at = 0;
  while (at < length && left[at] === right[at]) at += 1;
  return at;
}
