/**
 * Shell text to bytes and back, in the encodings that just-bash names. Pipes carry bytes as text with one character per
 * byte ("binary", "latin1"); files that a command wrote as text are UTF-8.
 */
import type { BufferEncoding, FileContent } from "just-bash/browser";
import { unreachable } from "../../domain/shared/assert.ts";

type EncodingOption = { encoding?: BufferEncoding | null } | BufferEncoding | undefined;

export function bytesOf(content: FileContent, option?: EncodingOption): Uint8Array {
  if (typeof content !== "string") return content;
  const encoding = encodingOf(option);
  switch (encoding) {
    case "binary":
    case "latin1":
    case "ascii":
      return Uint8Array.from(content, (character) => character.charCodeAt(0));
    case "base64":
      return Uint8Array.from(atob(content), (character) => character.charCodeAt(0));
    case "hex":
      return Uint8Array.from(content.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
    case "utf8":
    case "utf-8":
      return new TextEncoder().encode(content);
  }
  return unreachable(encoding);
}

export function textOf(bytes: Uint8Array, option?: EncodingOption): string {
  const encoding = encodingOf(option);
  switch (encoding) {
    case "binary":
    case "latin1":
    case "ascii":
      return byteString(bytes);
    case "base64":
      return btoa(byteString(bytes));
    case "hex":
      return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    case "utf8":
    case "utf-8":
      // The mark is kept, so that a filtered file starts with the bytes it had.
      return new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(bytes);
  }
  return unreachable(encoding);
}

function encodingOf(option: EncodingOption): BufferEncoding {
  return (typeof option === "string" ? option : option?.encoding) ?? "utf8";
}

/** One character per byte. In slices, because a spread of a large array overflows the stack. */
function byteString(bytes: Uint8Array): string {
  const slices: string[] = [];
  for (let at = 0; at < bytes.byteLength; at += 8_192) {
    slices.push(String.fromCharCode(...bytes.subarray(at, at + 8_192)));
  }
  return slices.join("");
}
