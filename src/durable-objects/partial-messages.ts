/**
 * Puts the pieces of `messages/partial` frames together, for one reader (`legacy-messages.ts`). Owns nothing stored: what
 * it remembers saves reading a message's pieces again, and what it forgot is read again.
 */
import { AIMessageChunk, type AIMessageChunkFields } from "@langchain/core/messages";
import { toWireMessage } from "../agent/wire/to-wire.ts";
import type { Frame, NextFrame, PieceData } from "../platform/durable-storage/frame-log.ts";

/** Messages that come at the same time are those of parallel children; each is held once for each reader of this mode. */
const MESSAGES_KEPT = 4;

export class PartialMessages {
  readonly #next: (afterId: number) => NextFrame | { readonly kind: "expired" };
  readonly #kept = new Map<number, AIMessageChunk>();

  constructor(next: (afterId: number) => NextFrame | { readonly kind: "expired" }) {
    this.#next = next;
  }

  /** The data of a partial frame; `undefined` when its message's beginning is gone. Frames are asked for in order. */
  render(frameId: number, { firstId, piece }: PieceData): string | undefined {
    const before = this.#kept.get(firstId) ?? this.#gather(firstId, frameId);
    if (before === "gone") return undefined;
    const whole = before === undefined ? toChunk(piece) : before.concat(toChunk(piece));
    this.#kept.delete(firstId);
    this.#kept.set(firstId, whole);
    const oldest = this.#kept.keys().next().value;
    if (this.#kept.size > MESSAGES_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    return JSON.stringify([toWireMessage(whole)]);
  }

  /** The message before `frameId`; `undefined` when that is its first frame. */
  #gather(firstId: number, frameId: number): AIMessageChunk | undefined | "gone" {
    let whole: AIMessageChunk | undefined;
    for (let at = firstId - 1; at < frameId - 1;) {
      const found = this.#next(at);
      if (found.kind !== "frame" || (at === firstId - 1 && found.frame.id !== firstId)) return "gone";
      at = found.frame.id;
      if (at >= frameId) return whole;
      const piece = pieceOf(found.frame, firstId);
      if (piece !== undefined) whole = whole === undefined ? toChunk(piece) : whole.concat(toChunk(piece));
    }
    return whole;
  }
}

function pieceOf({ data }: Frame, firstId: number): string | undefined {
  return typeof data !== "string" && "piece" in data && data.firstId === firstId ? data.piece : undefined;
}

function toChunk(piece: string): AIMessageChunk {
  const {
    type: _type,
    tool_call_chunks: pieces,
    tool_calls: calls,
    ...fields
  } = JSON.parse(piece) as Record<string, unknown>;
  // The calls are read from their pieces, as far as they are whole.
  const called = Array.isArray(pieces) && pieces.length > 0 ? { tool_call_chunks: pieces } : { tool_calls: calls };
  return new AIMessageChunk({ ...fields, ...called } as unknown as AIMessageChunkFields);
}
