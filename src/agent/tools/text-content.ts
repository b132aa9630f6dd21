/**
 * Bytes of a file as text, or the finding that they are none. A NUL or bytes that are not UTF-8 make a file binary.
 */
export function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    // The mark is kept, so that an edited file starts with the bytes it had.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

export function encodeText(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
