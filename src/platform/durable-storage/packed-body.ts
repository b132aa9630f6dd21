/**
 * One BLOB out of a JSON header and byte segments, so that a whole checkpoint or all writes of a task are one row.
 *
 * Layout: four bytes big-endian header length, the header as UTF-8 JSON, then the segments without gaps. The header
 * says how long each segment is. Bytes, never TEXT: SQLite text would turn half of a surrogate pair into U+FFFD.
 */
import { invariant } from "../../domain/shared/assert.ts";

const LENGTH_BYTES = 4;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export interface PackedBody<Header> {
  readonly header: Header;
  readonly segments: readonly Uint8Array[];
}

interface Envelope<Header> {
  readonly header: Header;
  readonly lengths: readonly number[];
}

export function packBody<Header>({ header, segments }: PackedBody<Header>): Uint8Array {
  const envelope: Envelope<Header> = { header, lengths: segments.map((segment) => segment.byteLength) };
  const head = encoder.encode(JSON.stringify(envelope));
  const body = segments.reduce((bytes, segment) => bytes + segment.byteLength, LENGTH_BYTES + head.byteLength);
  const packed = new Uint8Array(body);
  new DataView(packed.buffer).setUint32(0, head.byteLength);
  packed.set(head, LENGTH_BYTES);
  let at = LENGTH_BYTES + head.byteLength;
  for (const segment of segments) {
    packed.set(segment, at);
    at += segment.byteLength;
  }
  return packed;
}

/** The inverse of `packBody`; segments are views into `packed`. Throws `InvariantError` on a truncated body. */
export function unpackBody<Header>(packed: Uint8Array): PackedBody<Header> {
  invariant(packed.byteLength >= LENGTH_BYTES, "packed body has no length");
  const headLength = new DataView(packed.buffer, packed.byteOffset).getUint32(0);
  let at = LENGTH_BYTES + headLength;
  const envelope = JSON.parse(decoder.decode(packed.subarray(LENGTH_BYTES, at))) as Envelope<Header>;
  const segments = envelope.lengths.map((length) => packed.subarray(at, (at += length)));
  invariant(at === packed.byteLength, "packed body is not as long as its header says");
  return { header: envelope.header, segments };
}
