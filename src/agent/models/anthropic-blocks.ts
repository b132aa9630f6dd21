/**
 * Content of a stored message as Anthropic's own blocks: text and images. Blocks that providers are never sent (calls,
 * thinking) fall away; what Anthropic could not read is named in a text, so that no message becomes empty and no request
 * is refused for it.
 */
import { isDroppedBlock } from "./assert-model-request.ts";
import { isImage } from "./image-block.ts";
import { isBlank, isPlainObject } from "./request-rules.ts";

export type AnthropicBlock = Readonly<Record<string, unknown>> & { readonly type: string };

export function toAnthropicBlocks(content: unknown): readonly AnthropicBlock[] {
  if (typeof content === "string") return isBlank(content) ? [] : [{ type: "text", text: content }];
  return Array.isArray(content) ? content.filter((block) => !isDroppedBlock(block)).flatMap(toBlock) : [];
}

function toBlock(block: unknown): readonly AnthropicBlock[] {
  if (!isPlainObject(block)) return [];
  if (typeof block.text === "string") return isBlank(block.text) ? [] : [{ type: "text", text: block.text }];
  const source = isImage(block) ? toImageSource(block) : undefined;
  if (source !== undefined) return [{ type: "image", source }];
  return [
    { type: "text", text: `[Content of the type ${JSON.stringify(block.type)} stands here. It cannot be shown.]` },
  ];
}

const DATA_URL = /^data:(image\/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/=\s]+)$/;

function toImageSource(block: Record<string, unknown>): Record<string, unknown> | undefined {
  const { source, image_url: linked, url, data } = block;
  if (isPlainObject(source) && typeof source.type === "string") return source;
  if (typeof data === "string") return toBase64(block.mimeType ?? block.mime_type, data);
  const address = isPlainObject(linked) ? linked.url : (linked ?? url);
  if (typeof address !== "string") return undefined;
  const [, type, inline] = DATA_URL.exec(address) ?? [];
  if (inline !== undefined) return toBase64(type, inline);
  return /^https?:\/\//.test(address) ? { type: "url", url: address } : undefined;
}

function toBase64(mediaType: unknown, data: string): Record<string, unknown> {
  return { type: "base64", media_type: typeof mediaType === "string" ? mediaType : "image/jpeg", data };
}
