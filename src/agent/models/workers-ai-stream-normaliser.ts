/**
 * Workers AI's two stream forms as one: OpenAI's chunks, which newer models send, and its own `{ response, tool_calls,
 * usage }`, which the others do. Pure; everything behind the translation is `openai-stream-normaliser.ts`.
 * In its own form nothing but `[DONE]` says that an answer is whole, and a call comes in one piece.
 */
import { ModelFailure } from "./model.ts";
import { OpenAiStreamNormaliser } from "./openai-stream-normaliser.ts";
import { isPlainObject } from "./request-rules.ts";
import { objectOf, parseStreamEvent, type StreamEvent } from "./stream-normaliser.ts";

export class WorkersAiStreamNormaliser extends OpenAiStreamNormaliser {
  #isOwnForm = false;
  #calls = 0;

  override push(data: string): StreamEvent[] {
    const event = parseStreamEvent(data);
    const failure = refusalIn(event);
    if (failure) throw failure;
    if (Array.isArray(event.choices)) return super.push(JSON.stringify(withDeltas(event, event.choices)));
    this.#isOwnForm = true;
    return super.push(JSON.stringify(this.#toOpenAiForm(event)));
  }

  markDone(): void {
    if (this.#isOwnForm && !this.isFinished) {
      super.push(JSON.stringify(chunkOf({}, this.#calls > 0 ? "tool_calls" : "stop")));
    }
  }

  /** `response` is a number for an answer that is one, and null in the event that ends the answer. */
  #toOpenAiForm({ response, tool_calls, usage, finish_reason, model }: StreamEvent): StreamEvent {
    const content = typeof response === "string" || typeof response === "number" ? String(response) : "";
    const calls = Array.isArray(tool_calls) ? tool_calls.filter(isPlainObject).map((call) => this.#toCall(call)) : [];
    const delta = { content, ...(calls.length > 0 && { tool_calls: calls }) };
    return { ...chunkOf(delta, finish_reason), usage, model };
  }

  #toCall({ id, name, arguments: args, function: called }: StreamEvent): StreamEvent {
    const index = this.#calls;
    this.#calls += 1;
    const inner = objectOf(called);
    return { index, id, function: { name: name ?? inner.name, arguments: args ?? inner.arguments ?? "" } };
  }
}

/** A model that answers whole sends messages where a stream has deltas. */
function withDeltas(event: StreamEvent, choices: readonly unknown[]): StreamEvent {
  const given = choices.filter(isPlainObject);
  return { ...event, choices: given.map(({ message, ...choice }) => ({ delta: message, ...choice })) };
}

function chunkOf(delta: StreamEvent, finish_reason: unknown): StreamEvent {
  return { choices: [{ index: 0, delta, finish_reason: finish_reason ?? null }] };
}

/** `{ errors: [{ code, message }] }`, the form of Cloudflare's API, inside a stream that began well. */
function refusalIn({ errors }: StreamEvent): ModelFailure | undefined {
  const first = Array.isArray(errors) ? objectOf(errors[0]) : {};
  if (typeof first.message !== "string") return undefined;
  return new ModelFailure("stream_error", first.message);
}
