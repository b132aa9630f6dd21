/**
 * A file's bytes as they are being written: adding to the end costs only what is added, so that a shell loop with
 * thousands of `>>` stays linear. Invariant: what was handed in is copied, a caller's later change is not seen.
 */
export class ByteParts {
  #parts: Uint8Array[] = [];
  #size = 0;

  constructor(bytes: Uint8Array) {
    this.push(bytes);
  }

  get size(): number {
    return this.#size;
  }

  push(bytes: Uint8Array): void {
    this.#parts.push(bytes.slice());
    this.#size += bytes.byteLength;
  }

  /** The whole; joined once and kept, so treat it as read-only. */
  bytes(): Uint8Array {
    if (this.#parts.length === 1) return this.#parts[0]!;
    const joined = new Uint8Array(this.#size);
    let at = 0;
    for (const part of this.#parts) {
      joined.set(part, at);
      at += part.byteLength;
    }
    this.#parts = [joined];
    return joined;
  }
}

export function concatBytes(first: Uint8Array, second: Uint8Array): Uint8Array {
  const joined = new Uint8Array(first.byteLength + second.byteLength);
  joined.set(first);
  joined.set(second, first.byteLength);
  return joined;
}
