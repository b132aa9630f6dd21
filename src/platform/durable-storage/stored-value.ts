/** A serialised value as the checkpoint rows hold it: the serializer's type tag and its bytes. */
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";

export interface StoredValue {
  readonly type: string;
  readonly bytes: Uint8Array;
}

export async function storeValue(serde: SerializerProtocol, value: unknown): Promise<StoredValue> {
  const [type, bytes] = await serde.dumpsTyped(value);
  return { type, bytes };
}

export async function loadValue(serde: SerializerProtocol, { type, bytes }: StoredValue): Promise<unknown> {
  // Raw bytes come back as they are, so they must not be a view that keeps the whole row alive.
  return serde.loadsTyped(type, type === "bytes" ? bytes.slice() : bytes);
}
