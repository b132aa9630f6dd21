/**
 * Chat-completion stream events, made regular before the adapter sees them. Pure: events in, events out, no I/O.
 * Owns: the assistant role on every delta (without it the adapter loses the calls and the usage while the run stays
 * green), our message id and call ids, one delta a call with its whole raw arguments, one finish reason, usage once and
 * only when the provider sent it, and the failures that arrive inside a 200.
 * A call's arguments are emitted whole at the end: the adapter re-parses all of them at every delta.
 */
import { mintCallId } from "./call-id.ts";
import { ModelFailure } from "./model.ts";
import { isPlainObject, parseObject } from "./request-rules.ts";
import { ToolCallAssembler } from "./tool-call-assembler.ts";

/** A million tokens: more than any model writes at once, and an endless answer would fill the isolate. */
export const ANSWER_CHARS_MAX = 4_000_000;

export interface NormaliserOptions {
  readonly messageId: string;
  readonly random: () => number;
}

type Chunk = Record<string, unknown>;

export class OpenAiStreamNormaliser {
  readonly #options: NormaliserOptions;
  readonly #calls = new ToolCallAssembler();
  readonly #providerCallIds: Record<string, string> = {};
  #finishReason: string | undefined;
  #model: string | undefined;
  #usage: Chunk | undefined;
  #chars = 0;

  constructor(options: NormaliserOptions) {
    this.#options = options;
  }

  /** Ours → theirs; filled by `finish`. */
  get providerCallIds(): Readonly<Record<string, string>> {
    return this.#providerCallIds;
  }

  /** With a finish reason the answer is whole, whatever the connection does next. */
  get isFinished(): boolean {
    return this.#finishReason !== undefined;
  }

  /** The data of one server-sent event, `[DONE]` excepted. Throws `ModelFailure` for an error inside the stream. */
  push(data: string): Chunk[] {
    const event = parseEvent(data);
    if (event.error !== undefined && event.error !== null) throw toStreamError(event.error);
    if (typeof event.model === "string" && event.model !== "") this.#model = event.model;
    if (isPlainObject(event.usage)) this.#usage = event.usage;
    const choice = firstChoice(event);
    if (!choice) return [];
    if (typeof choice.finish_reason === "string" && choice.finish_reason !== "") {
      this.#finishReason = choice.finish_reason;
    }
    const delta = isPlainObject(choice.delta) ? choice.delta : {};
    if (Array.isArray(delta.tool_calls)) for (const call of delta.tool_calls) this.#count(this.#calls.push(call));
    return this.#textDelta(delta);
  }

  /** The end of the stream: calls, finish reason and usage. Throws `ModelFailure` "truncated" without a finish reason. */
  finish(): Chunk[] {
    const finishReason = this.#finishReason;
    if (finishReason === undefined) {
      throw new ModelFailure("truncated", "the provider's stream ended without a finish reason");
    }
    const calls = this.#calls.finish().map((call, index) => {
      const id = mintCallId(this.#options.random);
      if (call.providerId !== undefined) this.#providerCallIds[id] = call.providerId;
      return { index, id, type: "function", function: { name: call.name, arguments: call.rawArguments } };
    });
    const delta = { role: "assistant", content: "", ...(calls.length > 0 && { tool_calls: calls }) };
    const usage = toUsage(this.#usage);
    return [
      this.#chunk([{ index: 0, delta, finish_reason: finishReason }]),
      ...(usage ? [{ ...this.#chunk([]), usage }] : []),
    ];
  }

  #textDelta(delta: Chunk): Chunk[] {
    const content = textOf(delta.content) || textOf(delta.refusal);
    const reasoning = typeof delta.reasoning_content === "string" ? delta.reasoning_content : "";
    if (content === "" && reasoning === "") return [];
    this.#count(content.length + reasoning.length);
    const fields = { role: "assistant", content, ...(reasoning !== "" && { reasoning_content: reasoning }) };
    return [this.#chunk([{ index: 0, delta: fields, finish_reason: null }])];
  }

  #count(chars: number): void {
    this.#chars += chars;
    if (this.#chars > ANSWER_CHARS_MAX) {
      throw new ModelFailure("stream_error", `an answer of more than ${ANSWER_CHARS_MAX} characters`);
    }
  }

  #chunk(choices: readonly Chunk[]): Chunk {
    return { id: this.#options.messageId, object: "chat.completion.chunk", model: this.#model ?? "", choices };
  }
}

/** A string, or the list of text blocks that some providers send. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((block) => (isPlainObject(block) && typeof block.text === "string" ? block.text : "")).join("");
}

function parseEvent(data: string): Chunk {
  const event = parseObject(data);
  if (!event) throw new ModelFailure("stream_error", "the provider sent an event that is not a JSON object");
  return event;
}

/** We ask for one choice; others would mix into it. */
function firstChoice(event: Chunk): Chunk | undefined {
  const choices: unknown[] = Array.isArray(event.choices) ? event.choices : [];
  return choices.filter(isPlainObject).find((choice) => (choice.index ?? 0) === 0);
}

/** Long enough for any provider's sentence; a failure's text is shown and logged. */
const ERROR_TEXT_CHARS_MAX = 500;

/** `{ message, code }`, the same as JSON text or inside another `error`, a bare string, or whatever a proxy put there. */
export function toStreamError(given: unknown): ModelFailure {
  const error = typeof given === "string" ? (parseObject(given) ?? given) : given;
  if (isPlainObject(error) && error.error) return toStreamError(error.error);
  const fields = isPlainObject(error) ? error : { message: error };
  const text = typeof fields.message === "string" ? fields.message : JSON.stringify(error);
  const status = [fields.status, fields.code].map(Number).find((code) => code >= 400 && code <= 599);
  return new ModelFailure("stream_error", text.slice(0, ERROR_TEXT_CHARS_MAX), { status, code: errorCodeOf(error) });
}

/** The provider's own word for an error object: its `code`, else its `type`; numbers are statuses. */
export function errorCodeOf(error: unknown): string | undefined {
  if (!isPlainObject(error)) return undefined;
  return [error.code, error.type].find(
    (code): code is string => typeof code === "string" && /^[A-Za-z][\w.-]{0,99}$/.test(code),
  );
}

/** Missing usage stays missing, and half a record is missing too: a zero that nobody measured is a lie (R67). */
function toUsage(usage: Chunk | undefined): Chunk | undefined {
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total } = usage ?? {};
  if (!isCount(input) || !isCount(output)) return undefined;
  return {
    ...usage,
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: isCount(total) ? total : input + output,
  };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
