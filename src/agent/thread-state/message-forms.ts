/**
 * Turns whatever may stand for a message into a message object, without ids and without side effects.
 * Owns the accepted forms: strings, `[type, content]`, `{type, content}` and `{role, content}` dicts, serialized LangChain
 * constructors, message objects and chunks. Does not own ids or removals (`coerce-messages.ts`).
 * Invariant: the same input gives an equal message, always; nothing given in is changed.
 */
import {
  AIMessage,
  BaseMessage,
  BaseMessageChunk,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
  coerceMessageLikeToMessage,
} from "@langchain/core/messages";
import type { BaseMessageLike } from "@langchain/core/messages";

/** The id that makes a removal clear everything before it; LangGraph's own value. */
export const REMOVE_ALL_ID = "__remove_all__";

type MessageFields = Record<string, unknown>;
type MessageClass = new (fields: never) => BaseMessage;

const CLASS_BY_TYPE: Readonly<Record<string, MessageClass>> = {
  human: HumanMessage,
  ai: AIMessage,
  system: SystemMessage,
  tool: ToolMessage,
  function: FunctionMessage,
  generic: ChatMessage,
  remove: RemoveMessage,
};

export function isRemoval(message: BaseMessage): boolean {
  return message.getType() === "remove";
}

/** A fresh message of the plain class with `changes` applied. Chunk-only fields are dropped. */
export function copyMessage(message: BaseMessage, changes: MessageFields = {}): BaseMessage {
  const Class = CLASS_BY_TYPE[message.getType()];
  if (Class === undefined) throw new TypeError(`unknown message type '${message.getType()}'`);
  const own = Object.entries(message).filter(
    ([key]) => key !== "type" && key !== "tool_call_chunks" && !key.startsWith("lc_"),
  );
  return new Class({ ...Object.fromEntries(own), ...changes } as never);
}

/** Throws when `input` stands for no message. A message object that is no chunk is returned as it is. */
export function toMessage(input: unknown): BaseMessage {
  const message = coerceMessageLikeToMessage(input as BaseMessageLike);
  return BaseMessageChunk.isInstance(message) ? copyMessage(message) : message;
}

function isPlainMessage(value: unknown): value is BaseMessage {
  return BaseMessage.isInstance(value) && !BaseMessageChunk.isInstance(value);
}

/** As `toMessage`, with `undefined` instead of the throw. Message objects take the short way: replay calls this for each. */
export function toMessageOrUndefined(input: unknown): BaseMessage | undefined {
  if (isPlainMessage(input)) return input;
  try {
    const message = toMessage(input);
    return isPlainMessage(message) ? message : undefined;
  } catch {
    return undefined;
  }
}
