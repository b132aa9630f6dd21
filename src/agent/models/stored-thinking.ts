/**
 * A model's thinking, kept with its answer so that its provider gets it back as it was: a provider that signs its
 * thinking refuses the rest of a tool turn without it.
 * The text stands once, in `additional_kwargs.reasoning_content`, where every provider's thinking is shown; beside it are
 * the signatures and how the text was cut. What does not fit together any more is not sent back.
 * Never part of `content`: thinking is no answer, whoever reads it.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { isPlainObject } from "./request-rules.ts";

/** PERSISTED: { v: 1, model, blocks: [{ type: "thinking", chars, signature } | { type: "redacted_thinking", data }] }. */
export const THINKING_KEY = "deputy_thinking";

export const REASONING_KEY = "reasoning_content";

export type SignedBlock =
  /** `chars` of the text, in UTF-16 units, follow those of the block before. */
  | { readonly type: "thinking"; readonly chars: number; readonly signature: string }
  | { readonly type: "redacted_thinking"; readonly data: string };

export interface StoredThinking {
  readonly v: 1;
  /** The provider's id of the model that signed it; another one is not given it. */
  readonly model: string;
  readonly blocks: readonly SignedBlock[];
}

/** A block in the form it came in. */
export type ThinkingBlock =
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "redacted_thinking"; readonly data: string };

/** What `model` signed of a message's thinking; empty when there is none, or it is another model's or not whole. */
export function readThinking({ additional_kwargs }: BaseMessage, model: string): readonly ThinkingBlock[] {
  const stored = additional_kwargs[THINKING_KEY];
  if (!isPlainObject(stored) || stored.v !== 1 || stored.model !== model || !Array.isArray(stored.blocks)) return [];
  const said = additional_kwargs[REASONING_KEY];
  const text = typeof said === "string" ? said : "";
  const blocks: ThinkingBlock[] = [];
  let at = 0;
  for (const block of stored.blocks) {
    const read = readBlock(block, text, at);
    if (read === undefined) return [];
    if (read.type === "thinking") at += read.thinking.length;
    blocks.push(read);
  }
  return blocks;
}

function readBlock(block: unknown, text: string, at: number): ThinkingBlock | undefined {
  if (!isPlainObject(block)) return undefined;
  const { type, chars, signature, data } = block;
  if (type === "redacted_thinking") return typeof data === "string" ? { type, data } : undefined;
  if (type !== "thinking" || typeof signature !== "string" || typeof chars !== "number") return undefined;
  const thinking = text.slice(at, at + chars);
  return thinking.length === chars ? { type, thinking, signature } : undefined;
}
