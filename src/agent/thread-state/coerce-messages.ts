/**
 * The check before every write to `messages`: run input, `updateState`, `Command.update` and node returns.
 * Owns coercion to message objects, ids in encounter order and the refusal of impossible removals.
 * Invariant: what passes here folds through `mergeMessageWrites` exactly as through the public `addMessages`, and reads
 * the same on every replay: it has its id, and it is a message object.
 */
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import { isAIMessage } from "@langchain/core/messages";
import type { BaseMessage } from "@langchain/core/messages";
import { type Result, err, ok } from "../../domain/shared/result.ts";
import { REMOVE_ALL_ID, copyMessage, isRemoval, toMessage } from "./message-forms.ts";

export type MessageWriteRefusal =
  | { readonly reason: "null_write"; readonly message: string }
  | { readonly reason: "not_a_message"; readonly index: number; readonly message: string }
  | { readonly reason: "unknown_removal"; readonly index: number; readonly id: string; readonly message: string };

const ALLOWED_FORMS =
  "a string, { type, content } or { role, content } with type or role human, user, ai, assistant, system, developer or " +
  "tool (with tool_call_id), or { type: 'remove', id }";

/** Characters of a foreign value shown in a refusal. */
const SHOWN_CHARS_MAX = 200;

function shown(value: unknown): string {
  try {
    return UTF16_UNITS.first(JSON.stringify(value) ?? String(value), SHOWN_CHARS_MAX);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

function notAMessage(index: number, why: string): Result<never, MessageWriteRefusal> {
  return err({ reason: "not_a_message", index, message: `messages[${index}]: ${why}; allowed: ${ALLOWED_FORMS}` });
}

/** What LangChain's constructors let through although no model request could ever carry it. */
function malformedField(message: BaseMessage): string | undefined {
  if (message.id !== undefined && message.id !== null && typeof message.id !== "string") return "id must be a string";
  if (isRemoval(message)) return undefined;
  if (typeof message.content !== "string" && !Array.isArray(message.content)) {
    return "content must be a string or a list of content blocks";
  }
  if (isAIMessage(message) && message.tool_calls !== undefined && !Array.isArray(message.tool_calls)) {
    return "tool_calls must be a list";
  }
  return isAIMessage(message) ? malformedCallId(message.tool_calls ?? []) : undefined;
}

/** Two calls of one id would share a result and staged files; a call without an id is given one in the request. */
function malformedCallId(calls: readonly { readonly id?: unknown }[]): string | undefined {
  const ids = calls.map((call) => call.id).filter((id) => id !== undefined && id !== null && id !== "");
  if (ids.some((id) => typeof id !== "string")) return "tool_calls ids must be strings";
  return new Set(ids).size === ids.length ? undefined : "tool_calls ids must be unique in the message";
}

function coerceOne(input: unknown, index: number): Result<BaseMessage, MessageWriteRefusal> {
  if (input === null || input === undefined) return notAMessage(index, `${input} is no message`);
  try {
    const message = toMessage(input);
    const malformed = malformedField(message);
    return malformed === undefined ? ok(message) : notAMessage(index, `${malformed} (got ${shown(input)})`);
  } catch {
    return notAMessage(index, `cannot be read as a message (got ${shown(input)})`);
  }
}

/** A message given without an id is copied with a new one; the caller's object is left alone. */
function withId(message: BaseMessage, newId: () => string): BaseMessage {
  return message.id === undefined || message.id === null ? copyMessage(message, { id: newId() }) : message;
}

/** An unknown id is refused here because inside replay it could only be ignored or break every later read. */
function refusedRemoval(
  state: readonly BaseMessage[],
  write: readonly BaseMessage[],
): Result<never, MessageWriteRefusal> | undefined {
  if (write.some((message) => message.id === REMOVE_ALL_ID && isRemoval(message))) return undefined;
  if (!write.some(isRemoval)) return undefined;
  const known = new Set(state.map((message) => message.id));
  for (const [index, message] of write.entries()) {
    if (!isRemoval(message)) known.add(message.id);
    else if (!known.has(message.id)) {
      const id = String(message.id);
      const text = `messages[${index}] removes '${id}', which the thread does not hold; allowed: an id in state, or '${REMOVE_ALL_ID}'`;
      return err({ reason: "unknown_removal", index, id, message: text });
    }
  }
  return undefined;
}

/**
 * `input` is one message-like or a list. On success the write is what to hand to the channel; on refusal nothing may be
 * written. `state` is the channel's value the write will meet.
 */
export function prepareMessageWrite(
  state: readonly BaseMessage[],
  input: unknown,
  newId: () => string,
): Result<BaseMessage[], MessageWriteRefusal> {
  if (input === null || input === undefined) {
    return err({
      reason: "null_write",
      message: `messages is ${input}; allowed: ${ALLOWED_FORMS}, or a list of these`,
    });
  }
  const items: readonly unknown[] = Array.isArray(input) ? input : [input];
  const write: BaseMessage[] = [];
  for (const [index, item] of items.entries()) {
    const coerced = coerceOne(item, index);
    if (!coerced.ok) return coerced;
    write.push(coerced.value);
  }
  const identified = write.map((message) => withId(message, newId));
  return refusedRemoval(state, identified) ?? ok(identified);
}

const SERVER_OWNED_KEYS: ReadonlySet<string> = new Set(["original_user_content"]);
const SERVER_OWNED_PREFIXES = ["subagent_", "deerflow_", "deputy_"] as const;

function isServerOwned(key: string): boolean {
  return SERVER_OWNED_KEYS.has(key) || SERVER_OWNED_PREFIXES.some((prefix) => key.startsWith(prefix));
}

/** For messages from outside only: a client could otherwise forge a delegation's status or a turn-ending mark. */
export function stripServerOwnedKeys(messages: readonly BaseMessage[]): BaseMessage[] {
  return messages.map((message) => {
    const entries = Object.entries(message.additional_kwargs ?? {});
    const kept = entries.filter(([key]) => !isServerOwned(key));
    if (kept.length === entries.length) return message;
    return copyMessage(message, { additional_kwargs: Object.fromEntries(kept) });
  });
}
