/** A serialised value as the checkpoint rows hold it: the serializer's type tag and its bytes. */
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";

export interface StoredValue {
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** What LangGraph's serializer writes, without an error, in place of a whole value that `JSON.stringify` refuses. */
const LOST_VALUE = new TextEncoder().encode(
  JSON.stringify("[unable to serialize, circular reference is too complex to analyze]"),
);

/** Throws when the serializer dropped the value: a failed step can be seen and repeated, a lost value cannot. */
export async function storeValue(serde: SerializerProtocol, value: unknown): Promise<StoredValue> {
  const [type, bytes] = await serde.dumpsTyped(value);
  if (typeof value !== "string" && isLost(bytes)) throw new TypeError("a value of the state cannot be serialised");
  return { type, bytes };
}

function isLost(bytes: Uint8Array): boolean {
  return bytes.byteLength === LOST_VALUE.byteLength && bytes.every((byte, place) => byte === LOST_VALUE[place]);
}

export async function loadValue(serde: SerializerProtocol, { type, bytes }: StoredValue): Promise<unknown> {
  // Raw bytes come back as they are, so they must not be a view that keeps the whole row alive.
  return serde.loadsTyped(type, type === "bytes" ? bytes.slice() : bytes);
}
