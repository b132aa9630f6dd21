/**
 * LangGraph's serializer with a reading that cannot fail on what was stored.
 * Owns how a stored JSON value becomes objects again; the written form stays LangGraph's. Its own reading throws at data
 * that looks like a LangChain constructor it does not know, and at messages nested deeper than 50 levels; both can come
 * from a client or a model, and a value that throws here makes its thread unreadable for ever.
 *
 * - Messages are constructed here, at any depth.
 * - Data that looks like a stored form is marked when it is written, by LangChain inside messages and here elsewhere;
 *   the mark is taken off, and what it held is read as the data it was.
 * - A constructor that cannot be revived stays the plain data it is.
 */
import {
  AIMessage,
  AIMessageChunk,
  ChatMessage,
  ChatMessageChunk,
  FunctionMessage,
  FunctionMessageChunk,
  HumanMessage,
  HumanMessageChunk,
  RemoveMessage,
  SystemMessage,
  SystemMessageChunk,
  ToolMessage,
  ToolMessageChunk,
} from "@langchain/core/messages";
import { DeltaSnapshot, JsonPlusSerializer } from "@langchain/langgraph-checkpoint";

type Fields = Record<string, unknown>;

const MESSAGE_NAMESPACE = "langchain_core/messages/";
const MESSAGE_CLASSES: ReadonlyMap<string, new (fields: never) => object> = new Map(
  Object.entries({
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
  }),
);

/** What LangChain puts around an object that could be taken for one of its own. */
const ESCAPE_KEY = "__lc_escaped__";

export class StateSerializer extends JsonPlusSerializer {
  override async dumpsTyped(value: unknown): Promise<[string, Uint8Array]> {
    return super.dumpsTyped(escaped(value, new Set()));
  }

  override async loadsTyped(type: string, data: Uint8Array | string): Promise<unknown> {
    if (type !== "json") return super.loadsTyped(type, data);
    const reading = new Reading();
    const text = typeof data === "string" ? data : new TextDecoder().decode(data);
    const value = reading.revive(JSON.parse(text));
    // Only LangGraph knows its other forms; what it cannot read either stays data.
    return reading.metForeign ? super.loadsTyped(type, data).catch(() => value) : value;
  }
}

/** One value's reading. */
class Reading {
  /** A form other than a message or a snapshot: left as it stands. */
  metForeign = false;

  revive(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => this.revive(item));
    const record = value as Fields;
    if (isEscaped(record)) return record[ESCAPE_KEY];
    const entries = Object.entries(record).map(([key, inner]) => [key, this.revive(inner)]);
    return this.#construct(Object.fromEntries(entries) as Fields);
  }

  #construct(record: Fields): unknown {
    const { lc, type } = record;
    if (lc === 2 && type === "undefined") return undefined;
    if (lc === 2 && type === "delta_snapshot") return new DeltaSnapshot(record["value"]);
    const message = toMessage(record);
    if (message !== undefined) return message;
    if (type === "constructor" && (lc === 1 || lc === 2)) this.metForeign = true;
    return record;
  }
}

/** Marks plain objects that look like a stored form; all else is handed back as it is. `path` ends circles. */
function escaped(value: unknown, path: Set<object>): unknown {
  if (!isPlain(value) || path.has(value)) return value;
  if (Object.hasOwn(value, "lc") || isEscaped(value as Fields)) return { [ESCAPE_KEY]: value };
  path.add(value);
  const copy = Array.isArray(value)
    ? value.map((item) => escaped(item, path))
    : Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, escaped(inner, path)]));
  path.delete(value);
  return copy;
}

/** Lists, and objects of no class. */
function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Array.isArray(value);
}

function isEscaped(record: Fields): boolean {
  return Object.hasOwn(record, ESCAPE_KEY) && Object.keys(record).length === 1;
}

function messageClassOf({ lc, type, id }: Fields) {
  if (lc !== 1 || type !== "constructor" || !Array.isArray(id) || id.length !== 3) return undefined;
  const name = id.join("/");
  return name.startsWith(MESSAGE_NAMESPACE) ? MESSAGE_CLASSES.get(name.slice(MESSAGE_NAMESPACE.length)) : undefined;
}

/** `undefined` for what only looks like a message; its class refuses it. */
function toMessage(record: Fields): object | undefined {
  const Message = messageClassOf(record);
  if (Message === undefined) return undefined;
  try {
    return new Message(record["kwargs"] as never);
  } catch {
    return undefined;
  }
}
