/**
 * Calls and their results in the one order providers accept: each assistant message, then exactly one result a call, in
 * call order. Owns pairing, the ids of a request, and the results made up for calls that have none.
 * A result belongs to the nearest call in front of it that has its id and no result yet; what finds none is dropped.
 * Deterministic: the same history gives the same request, so a provider's prompt cache keeps working.
 */
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { UNKNOWN_TOOL_NAME } from "../models/checked-calls.ts";
import { isPlainObject, MODEL_NAME_PATTERN } from "../models/request-rules.ts";
import { copyMessage } from "../thread-state/message-forms.ts";

/** Says what is known: the call was made and no result was stored. */
export const DANGLING_RESULT_TEXT =
  "Error: this call has no result. It was interrupted, and whether it took effect is unknown.";

interface Slot {
  readonly call: ToolCall;
  result: ToolMessage | undefined;
}

interface Entry {
  readonly message: BaseMessage;
  readonly slots: readonly Slot[];
}

/** `messages` went through `cleanMessage`. */
export function pairResults(messages: readonly BaseMessage[]): BaseMessage[] {
  const ids = new RequestIds(messages);
  return pairEntries(messages).flatMap(({ message, slots }) =>
    slots.length === 0 ? message : render(message, slots, ids),
  );
}

function pairEntries(messages: readonly BaseMessage[]): Entry[] {
  const entries: Entry[] = [];
  const openById = new Map<string, Slot[][]>();
  for (const message of messages) {
    if (ToolMessage.isInstance(message)) {
      const slot = takeSlot(openById.get(message.tool_call_id ?? ""));
      if (slot) slot.result = message;
      continue;
    }
    const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
    const slots = calls.map((call): Slot => ({ call, result: undefined }));
    openSlots(openById, slots);
    entries.push({ message, slots });
  }
  return entries;
}

/** The open calls of an id, one group an assistant message. */
function openSlots(openById: Map<string, Slot[][]>, slots: readonly Slot[]): void {
  for (const [id, group] of Map.groupBy(slots, (slot) => slot.call.id ?? "")) {
    const groups = openById.get(id);
    if (groups) groups.push(group);
    else openById.set(id, [group]);
  }
}

/** The first open call of the nearest assistant message. */
function takeSlot(groups: Slot[][] | undefined): Slot | undefined {
  const slot = groups?.at(-1)?.shift();
  if (groups?.at(-1)?.length === 0) groups.pop();
  return slot;
}

function render(message: BaseMessage, slots: readonly Slot[], ids: RequestIds): BaseMessage[] {
  const calls = slots.map(({ call }) => ({
    type: "tool_call" as const,
    id: ids.claim(call.id),
    name: MODEL_NAME_PATTERN.test(call.name) ? call.name : UNKNOWN_TOOL_NAME,
    args: isPlainObject(call.args) ? call.args : {},
  }));
  const results = slots.map(({ result }, index) => toResult(result, calls[index] as (typeof calls)[number]));
  return [copyMessage(message, { tool_calls: calls }), ...results];
}

function toResult(result: ToolMessage | undefined, call: { readonly id: string; readonly name: string }): BaseMessage {
  if (result) return copyMessage(result, { tool_call_id: call.id });
  return new ToolMessage({
    content: DANGLING_RESULT_TEXT,
    tool_call_id: call.id,
    name: call.name,
    status: "error",
  });
}

/** Ids within one request: stored ones stay where they are unique, others are numbered past every stored one. */
class RequestIds {
  readonly #stored: ReadonlySet<string>;
  readonly #used = new Set<string>();
  #minted = 0;

  constructor(messages: readonly BaseMessage[]) {
    const calls = messages.flatMap((message) => (AIMessage.isInstance(message) ? (message.tool_calls ?? []) : []));
    this.#stored = new Set(calls.map((call) => call.id ?? ""));
  }

  claim(stored: string | undefined): string {
    const id = stored && !this.#used.has(stored) ? stored : this.#mint();
    this.#used.add(id);
    return id;
  }

  #mint(): string {
    for (;;) {
      this.#minted += 1;
      const id = `call_${String(this.#minted).padStart(24, "0")}`;
      if (!this.#stored.has(id)) return id;
    }
  }
}
