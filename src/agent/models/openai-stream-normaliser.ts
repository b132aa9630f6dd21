/**
 * Chat-completion stream events, made regular before the adapter sees them. Pure: events in, events out, no I/O.
 * Owns: the assistant role on every delta (without it the adapter loses the calls and the usage while the run stays
 * green), our message id and call ids, one delta a call with its whole raw arguments, one finish reason, usage once and
 * only when the provider sent it, and the failures that arrive inside a 200.
 * A call's arguments are emitted whole at the end: the adapter re-parses all of them at every delta.
 */
import { mintCallId } from "./call-id.ts";
import { ContinuedText } from "./continued-text.ts";
import { ModelFailure } from "./model.ts";
import { isPlainObject } from "./request-rules.ts";
import {
  AnswerSize,
  isTokenCount,
  objectOf,
  parseStreamEvent,
  type StreamEvent,
  type StreamNormaliser,
} from "./stream-normaliser.ts";
import { ToolCallAssembler } from "./tool-call-assembler.ts";

export interface NormaliserOptions {
  readonly messageId: string;
  readonly random: () => number;
  /** The text of a broken answer that this one goes on with. */
  readonly begun?: string | undefined;
}

export class OpenAiStreamNormaliser implements StreamNormaliser {
  readonly #options: NormaliserOptions;
  readonly #calls = new ToolCallAssembler();
  readonly #providerCallIds: Record<string, string> = {};
  #finishReason: string | undefined;
  #model: string | undefined;
  #usage: StreamEvent | undefined;
  readonly #size = new AnswerSize();
  readonly #text: ContinuedText;
  #hasCalls = false;

  constructor(options: NormaliserOptions) {
    this.#options = options;
    this.#text = new ContinuedText(options.begun);
  }

  /** Ours → theirs; filled by `finish`. */
  get providerCallIds(): Readonly<Record<string, string>> {
    return this.#providerCallIds;
  }

  get hasCalls(): boolean {
    return this.#hasCalls;
  }

  /** With a finish reason the answer is whole, whatever the connection does next. */
  get isFinished(): boolean {
    return this.#finishReason !== undefined;
  }

  /** The data of one server-sent event, `[DONE]` excepted. Throws `ModelFailure` for an error inside the stream. */
  push(data: string): StreamEvent[] {
    const event = parseStreamEvent(data);
    if (typeof event.model === "string" && event.model !== "") this.#model = event.model;
    if (isPlainObject(event.usage)) this.#usage = event.usage;
    const choice = firstChoice(event);
    if (!choice) return [];
    if (typeof choice.finish_reason === "string" && choice.finish_reason !== "") {
      this.#finishReason = choice.finish_reason;
    }
    const delta = objectOf(choice.delta);
    if (Array.isArray(delta.tool_calls) && delta.tool_calls.length > 0) this.#hasCalls = true;
    if (Array.isArray(delta.tool_calls)) for (const call of delta.tool_calls) this.#size.add(this.#calls.push(call));
    return this.#textDelta(delta);
  }

  /** The end of the stream: calls, finish reason and usage. Throws `ModelFailure` "truncated" without a finish reason. */
  finish(): StreamEvent[] {
    const finishReason = this.#finishReason;
    if (finishReason === undefined) {
      throw new ModelFailure("truncated", "the provider's stream ended without a finish reason");
    }
    const calls = this.#calls.finish().map((call, index) => {
      const id = mintCallId(this.#options.random);
      if (call.providerId !== undefined) this.#providerCallIds[id] = call.providerId;
      return { index, id, type: "function", function: { name: call.name, arguments: call.rawArguments } };
    });
    const delta = { role: "assistant", content: this.#text.finish(), ...(calls.length > 0 && { tool_calls: calls }) };
    const usage = toUsage(this.#usage);
    return [
      this.#chunk([{ index: 0, delta, finish_reason: finishReason }]),
      ...(usage ? [{ ...this.#chunk([]), usage }] : []),
    ];
  }

  #textDelta(delta: StreamEvent): StreamEvent[] {
    const said = textOf(delta.content) || textOf(delta.refusal);
    this.#size.add(said.length);
    const content = this.#text.push(said);
    const reasoning = typeof delta.reasoning_content === "string" ? delta.reasoning_content : "";
    if (content === "" && reasoning === "") return [];
    this.#size.add(reasoning.length);
    const fields = { role: "assistant", content, ...(reasoning !== "" && { reasoning_content: reasoning }) };
    return [this.#chunk([{ index: 0, delta: fields, finish_reason: null }])];
  }

  #chunk(choices: readonly StreamEvent[]): StreamEvent {
    return { id: this.#options.messageId, object: "chat.completion.chunk", model: this.#model ?? "", choices };
  }
}

/** A string, or the list of text blocks that some providers send. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((block) => (isPlainObject(block) && typeof block.text === "string" ? block.text : "")).join("");
}

/** We ask for one choice; others would mix into it. */
function firstChoice(event: StreamEvent): StreamEvent | undefined {
  const choices: unknown[] = Array.isArray(event.choices) ? event.choices : [];
  return choices.filter(isPlainObject).find((choice) => (choice.index ?? 0) === 0);
}

/** Missing usage stays missing, and half a record is missing too: a zero that nobody measured is a lie (R67). */
function toUsage(usage: StreamEvent | undefined): StreamEvent | undefined {
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total } = usage ?? {};
  if (!isTokenCount(input) || !isTokenCount(output)) return undefined;
  return {
    ...usage,
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: isTokenCount(total) ? total : input + output,
  };
}
