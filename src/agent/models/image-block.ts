/**
 * Which content blocks are images, in the forms that clients, LangChain and providers use, and what is said in an image's
 * place to a model that reads none: a request with one would be refused, and with it every later request of its thread.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { copyMessage } from "../thread-state/message-forms.ts";
import { isPlainObject } from "./request-rules.ts";

const IMAGE_BLOCK_TYPES: ReadonlySet<unknown> = new Set(["image", "image_url", "input_image"]);

export function isImage(block: unknown): boolean {
  return isPlainObject(block) && IMAGE_BLOCK_TYPES.has(block.type);
}

export const IMAGE_NOTE = "[An image stands here. It is left out, since this model does not read images.]";

/** The messages as they are when none has an image. */
export function withoutImages(messages: readonly BaseMessage[]): readonly BaseMessage[] {
  return messages.map((message) => {
    const { content } = message;
    if (typeof content === "string" || !Array.isArray(content) || !content.some(isImage)) return message;
    const noted = content.map((block) => (isImage(block) ? { type: "text", text: IMAGE_NOTE } : block));
    return copyMessage(message, { content: noted });
  });
}
