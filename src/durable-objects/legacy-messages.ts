/**
 * The stream mode `messages`, as it was before `messages-tuple`: `messages/metadata` once a message, then its growing text
 * as `messages/partial`, and whole messages as `messages/complete` once the state has them. Owns which of them a chunk makes.
 *
 * A partial says everything so far, so storing each whole would cost the square of an answer. A frame holds its piece and
 * names the frame with the first one; who reads puts them together (`partial-messages.ts`).
 */
import type { AIMessageChunk, BaseMessage } from "@langchain/core/messages";
import { toWire, toWireMessage } from "../agent/wire/to-wire.ts";
import type { FrameData } from "../platform/durable-storage/frame-log.ts";

interface LegacyFrame {
  readonly event: string;
  readonly data: FrameData | ((id: number) => FrameData);
}

export class LegacyMessages {
  readonly #completed: Set<string>;
  /** Message id → the frame with its first piece. */
  readonly #begun = new Map<string, number>();

  /** `older`: messages the thread had before the run; they are nobody's news. */
  constructor(older: ReadonlySet<string>) {
    this.#completed = new Set(older);
  }

  /** What LangGraph says of a message on its way: a piece of it, or all of it where it was not streamed. */
  token(suffix: string, message: unknown, metadata: unknown): LegacyFrame[] {
    // A whole message is told when the state has it.
    if (!isChunk(message) || !message.id) return [];
    const { id } = message;
    const piece = JSON.stringify(toWireMessage(message));
    const partial: LegacyFrame = {
      event: `messages/partial${suffix}`,
      data: (frameId) => {
        const firstId = this.#begun.get(id) ?? frameId;
        this.#begun.set(id, firstId);
        return { firstId, piece };
      },
    };
    if (this.#begun.has(id)) return [partial];
    const told = { [id]: { metadata: toWire(metadata) } };
    return [{ event: `messages/metadata${suffix}`, data: JSON.stringify(told) }, partial];
  }

  state(suffix: string, values: unknown): LegacyFrame[] {
    const messages: unknown = (values as { messages?: unknown } | null | undefined)?.messages;
    const all = (Array.isArray(messages) ? messages : [messages]).filter((each) => isMessage(each));
    const news = all.filter(({ id }) => id !== undefined && !this.#completed.has(id));
    for (const { id } of news) {
      this.#completed.add(id ?? "");
      this.#begun.delete(id ?? "");
    }
    return news.length === 0 ? [] : [{ event: `messages/complete${suffix}`, data: JSON.stringify(news.map(toWire)) }];
  }
}

function isMessage(value: unknown): value is BaseMessage {
  return value !== null && typeof value === "object" && "getType" in value;
}

function isChunk(value: unknown): value is AIMessageChunk {
  return isMessage(value) && "concat" in value && value.getType() === "ai";
}
