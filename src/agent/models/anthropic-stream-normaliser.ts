/**
 * Events of Anthropic's Messages stream, made regular before the adapter sees them. Pure: events in, events out, no I/O.
 * Owns: our call ids, one call with its whole raw arguments at the end, text and thinking as they come, and one last
 * event with finish reason (in the words of `openai`), model, whole usage and signed thinking in its `delta`, which the
 * adapter hands on untouched. Blocks of the provider's own tools are not asked for and are passed over.
 */
import { mintCallId } from "./call-id.ts";
import { ContinuedText } from "./continued-text.ts";
import { ModelFailure } from "./model.ts";
import type { NormaliserOptions } from "./openai-stream-normaliser.ts";
import {
  AnswerSize,
  isTokenCount,
  objectOf,
  parseStreamEvent,
  type StreamEvent,
  type StreamNormaliser,
} from "./stream-normaliser.ts";
import { type SignedBlock, type StoredThinking, THINKING_KEY } from "./stored-thinking.ts";

export interface AnthropicNormaliserOptions extends Pick<NormaliserOptions, "random" | "begun"> {
  /** The model that is asked; what its thinking is stored under. */
  readonly model: string;
}

interface OpenCall {
  readonly providerId: unknown;
  readonly name: string;
  /** What the block began with: the arguments, when no delta brings them. */
  readonly input: unknown;
  readonly pieces: string[];
}

interface OpenThinking {
  chars: number;
  signature: string;
  readonly data: string | undefined;
}

/** Anthropic's words in OpenAI's, which the rest of Deputy reads; others are kept. */
const FINISH_REASONS: Readonly<Record<string, string>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  pause_turn: "stop",
  tool_use: "tool_calls",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  refusal: "content_filter",
};

export class AnthropicStreamNormaliser implements StreamNormaliser {
  readonly #options: AnthropicNormaliserOptions;
  readonly #size = new AnswerSize();
  /** All of the answer, in order; the maps know the newest of an index, which some proxies use again. */
  readonly #calls: OpenCall[] = [];
  readonly #callAt = new Map<unknown, OpenCall>();
  readonly #thoughts: OpenThinking[] = [];
  readonly #thoughtAt = new Map<unknown, OpenThinking>();
  readonly #providerCallIds: Record<string, string> = {};
  /** Only thinking in front of everything else is sent back: there its place is certain. */
  #hasSpoken = false;
  readonly #text: ContinuedText;
  #stopReason: string | undefined;
  #model: string | undefined;
  #usage: StreamEvent = {};

  constructor(options: AnthropicNormaliserOptions) {
    this.#options = options;
    this.#text = new ContinuedText(options.begun);
  }

  get hasCalls(): boolean {
    return this.#calls.length > 0;
  }

  /** Ours → theirs; filled by `finish`. */
  get providerCallIds(): Readonly<Record<string, string>> {
    return this.#providerCallIds;
  }

  get isFinished(): boolean {
    return this.#stopReason !== undefined;
  }

  push(data: string): readonly StreamEvent[] {
    const event = parseStreamEvent(data);
    if (event.type === "message_start") this.#start(objectOf(event.message));
    if (event.type === "content_block_start") return this.#open(event.index, objectOf(event.content_block));
    if (event.type === "content_block_delta") return this.#continue(event.index, objectOf(event.delta));
    if (event.type === "message_delta") this.#end(objectOf(event.delta), event.usage);
    return [];
  }

  finish(): readonly StreamEvent[] {
    const stopReason = this.#stopReason;
    if (stopReason === undefined) {
      throw new ModelFailure("truncated", "the provider's stream ended without a stop reason");
    }
    const usage = toUsage(this.#usage);
    const thinking = this.#signedThinking();
    const delta = {
      finish_reason: FINISH_REASONS[stopReason] ?? stopReason,
      model_name: this.#model ?? this.#options.model,
      ...(usage && { usage }),
      ...(thinking && { [THINKING_KEY]: thinking }),
    };
    return [
      ...textDelta(this.#text.finish()),
      ...this.#calls.flatMap((call, index) => this.#toCallEvents(call, index)),
      { type: "message_delta", delta, usage: { output_tokens: 0 } },
      { type: "message_stop" },
    ];
  }

  #start({ model, usage }: StreamEvent): void {
    if (typeof model === "string" && model !== "") this.#model = model;
    this.#usage = { ...this.#usage, ...objectOf(usage) };
  }

  /** Its usage is cumulative: each field is the latest. */
  #end({ stop_reason }: StreamEvent, usage: unknown): void {
    if (typeof stop_reason === "string" && stop_reason !== "") this.#stopReason = stop_reason;
    const given = Object.entries(objectOf(usage)).filter(([, value]) => value !== null);
    this.#usage = { ...this.#usage, ...Object.fromEntries(given) };
  }

  #open(index: unknown, block: StreamEvent): readonly StreamEvent[] {
    if (block.type === "tool_use") {
      const name = textOf(block.name);
      this.#size.add(name.length);
      this.#hasSpoken = true;
      const call: OpenCall = { providerId: block.id, name, input: block.input, pieces: [] };
      this.#calls.push(call);
      this.#callAt.set(index, call);
      return [];
    }
    if (block.type === "text") return this.#say(textOf(block.text));
    if (block.type !== "thinking" && block.type !== "redacted_thinking") return [];
    const data = block.type === "redacted_thinking" ? textOf(block.data) : undefined;
    this.#size.add(data?.length ?? 0);
    if (!this.#hasSpoken) this.#openThought(index, { chars: 0, signature: textOf(block.signature), data });
    return this.#think(index, textOf(block.thinking));
  }

  #openThought(index: unknown, thought: OpenThinking): void {
    this.#thoughts.push(thought);
    this.#thoughtAt.set(index, thought);
  }

  #continue(index: unknown, delta: StreamEvent): readonly StreamEvent[] {
    if (delta.type === "text_delta") return this.#say(textOf(delta.text));
    if (delta.type === "thinking_delta") return this.#think(index, textOf(delta.thinking));
    const thought = this.#thoughtAt.get(index);
    if (delta.type === "signature_delta" && thought) thought.signature += this.#kept(textOf(delta.signature));
    if (delta.type === "input_json_delta") this.#callAt.get(index)?.pieces.push(this.#kept(textOf(delta.partial_json)));
    return [];
  }

  #say(text: string): readonly StreamEvent[] {
    this.#hasSpoken = true;
    return textDelta(this.#text.push(this.#kept(text)));
  }

  #think(index: unknown, thinking: string): readonly StreamEvent[] {
    if (thinking === "") return [];
    const thought = this.#thoughtAt.get(index);
    if (thought) thought.chars += thinking.length;
    return [
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: this.#kept(thinking) } },
    ];
  }

  #kept(text: string): string {
    this.#size.add(text.length);
    return text;
  }

  #toCallEvents({ providerId, name, input, pieces }: OpenCall, index: number): readonly StreamEvent[] {
    const id = mintCallId(this.#options.random);
    if (typeof providerId === "string" && providerId !== "") this.#providerCallIds[id] = providerId;
    // A call without arguments has no piece, or an empty one.
    const partial_json = pieces.join("") || JSON.stringify(objectOf(input));
    return [
      { type: "content_block_start", index, content_block: { type: "tool_use", id, name, input: {} } },
      { type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json } },
    ];
  }

  /** Nothing at all when one of them has no signature: the provider takes all of them or none. */
  #signedThinking(): StoredThinking | undefined {
    const thoughts = this.#thoughts;
    const isWhole = thoughts.length > 0 && thoughts.every(({ data, signature }) => (data ?? signature) !== "");
    const blocks = thoughts.map(({ chars, signature, data }): SignedBlock =>
      data === undefined ? { type: "thinking", chars, signature } : { type: "redacted_thinking", data },
    );
    return isWhole ? { v: 1, model: this.#options.model, blocks } : undefined;
  }
}

function textDelta(text: string): readonly StreamEvent[] {
  return text === "" ? [] : [{ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/**
 * LangChain's usage: the input with what was read from and written to the cache, which Anthropic counts apart. Missing
 * stays missing, and half a record is missing too: a zero that nobody measured is a lie (R67).
 */
function toUsage(usage: StreamEvent): StreamEvent | undefined {
  const { input_tokens: input, output_tokens: output } = usage;
  if (!isTokenCount(input) || !isTokenCount(output)) return undefined;
  const { cache_read_input_tokens: read, cache_creation_input_tokens: written } = usage;
  const details = {
    ...(isTokenCount(read) && { cache_read: read }),
    ...(isTokenCount(written) && { cache_creation: written }),
  };
  const whole = Object.values(details).reduce((sum, tokens) => sum + tokens, input);
  return {
    input_tokens: whole,
    output_tokens: output,
    total_tokens: whole + output,
    ...(Object.keys(details).length > 0 && { input_token_details: details }),
  };
}
