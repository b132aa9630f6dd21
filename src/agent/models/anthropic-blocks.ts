/**
 * Content of a stored message as Anthropic's own blocks: text and images. Blocks that providers are never sent (calls,
 * thinking) fall away; what Anthropic could not read is named in a text, so that no message becomes empty and no request
 * is refused for it.
 */
import { isDroppedBlock } from "./assert-model-request.ts";
import { isImage } from "./image-block.ts";
import { isBlank, isPlainObject } from "./request-rules.ts";

export type AnthropicBlock = Readonly<Record<string, unknown>> & { readonly type: string };

/** What a user says or a tool gives. */
export function toAnthropicBlocks(content: unknown): readonly AnthropicBlock[] {
  return blocksOf(content).flatMap((block) => toImage(block) ?? toText(block));
}

/** What a model or the system prompt says: words only. */
export function toTextBlocks(content: unknown): readonly AnthropicBlock[] {
  return blocksOf(content).flatMap(toText);
}

function blocksOf(content: unknown): readonly Record<string, unknown>[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return (content as unknown[]).filter(isPlainObject).filter((block) => !isDroppedBlock(block));
}

function toImage(block: Record<string, unknown>): AnthropicBlock | undefined {
  const source = isImage(block) ? toImageSource(block) : undefined;
  return source && { type: "image", source };
}

function toText(block: Record<string, unknown>): readonly AnthropicBlock[] {
  if (typeof block.text === "string") return isBlank(block.text) ? [] : [{ type: "text", text: block.text }];
  return [
    { type: "text", text: `[Content of the type ${JSON.stringify(block.type)} stands here. It cannot be shown.]` },
  ];
}

const DATA_URL = /^data:(image\/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/=\s]+)$/;

function toImageSource(block: Record<string, unknown>): Record<string, unknown> | undefined {
  const { source, image_url: linked, url, data } = block;
  if (isPlainObject(source)) return isSource(source) ? source : undefined;
  if (typeof data === "string") return toBase64(block.mimeType ?? block.mime_type, data);
  const address = isPlainObject(linked) ? linked.url : (linked ?? url);
  if (typeof address !== "string") return undefined;
  const [, type, inline] = DATA_URL.exec(address) ?? [];
  if (inline !== undefined) return toBase64(type, inline);
  return /^https?:\/\//.test(address) ? { type: "url", url: address } : undefined;
}

/** Anthropic's own form; the adapter would leave any other out without a word. */
function isSource({ type, url, data, media_type }: Record<string, unknown>): boolean {
  if (type === "url") return typeof url === "string";
  return type === "base64" && typeof data === "string" && typeof media_type === "string";
}

function toBase64(mediaType: unknown, data: string): Record<string, unknown> {
  return { type: "base64", media_type: typeof mediaType === "string" ? mediaType : "image/jpeg", data };
}
