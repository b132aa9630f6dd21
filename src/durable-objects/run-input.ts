/**
 * A run's input before it is accepted (architecture section 4, Messages): messages become message objects with ids and
 * removals are checked against the state, so that nothing that fails or differs on replay ever reaches a channel.
 * The accepted input is stored as dicts with ids, and read back to the same messages however often the run starts.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { CLIENT_CHANNELS } from "../agent/thread-state/client-channels.ts";
import { prepareMessageWrite, stripServerOwnedKeys } from "../agent/thread-state/coerce-messages.ts";
import { toWireMessage } from "../agent/wire/to-wire.ts";
import { invariant } from "../domain/shared/assert.ts";
import { err, ok, type Result } from "../domain/shared/result.ts";
import type { ApiRefusal } from "../protocol/errors.ts";

type Values = Record<string, unknown>;

/** Where a client wrote the values: for messages, and for the path of a refusal. */
export type ValuesPath = readonly [string, ...string[]];

/** `input` for `lead_agent`. On success `values` is JSON data and `messages` are what the write adds. */
export function prepareLeadInput(
  state: readonly BaseMessage[],
  input: Values,
  newId: () => string,
  at: ValuesPath = ["input"],
): Result<{ values: Values; messages: readonly BaseMessage[] }, ApiRefusal> {
  const foreign = Object.keys(input).find((channel) => !CLIENT_CHANNELS.includes(channel));
  if (foreign !== undefined) {
    const path = [...at, foreign];
    return invalid(
      `${path.join(".")} is not a channel a client may write; allowed: ${CLIENT_CHANNELS.join(", ")}`,
      path,
    );
  }
  if (input["messages"] === undefined || input["messages"] === null) {
    const { messages: _absent, ...values } = input;
    return ok({ values, messages: [] });
  }
  const prepared = prepareMessageWrite(state, input["messages"], newId);
  if (!prepared.ok) return invalid(prepared.error.message, [...at, "messages"]);
  const messages = stripServerOwnedKeys(prepared.value);
  return ok({ values: { ...input, messages: messages.map(toWireMessage) }, messages });
}

/** The stored input as LangGraph takes it. It passed `prepareLeadInput`, so reading it back cannot fail. */
export function restoreLeadInput(values: Values): Values {
  if (!Array.isArray(values["messages"])) return values;
  const restored = prepareMessageWrite(removable(values["messages"]), values["messages"], () => {
    invariant(false, "a stored message has no id");
  });
  invariant(restored.ok, "a stored input no longer reads as messages");
  return { ...values, messages: restored.value };
}

/** Removals were checked at acceptance: their targets are named again here so that the same check passes. */
function removable(messages: readonly unknown[]): BaseMessage[] {
  return messages.filter((message) => (message as { type?: unknown }).type === "remove") as BaseMessage[];
}

function invalid(message: string, path: readonly string[]): Result<never, ApiRefusal> {
  return err({ code: "invalid_request", message, details: { path } });
}
