/**
 * The reducer of the `messages` channel: replayed over stored writes on every read of a thread.
 * Owns how writes fold into messages: what the public `addMessages` does, write by write, in linear time.
 * Does not own ids, refusals or coercion errors: those stand before the write (`coerce-messages.ts`).
 * Invariants: deterministic; never throws and never mints an id, since a throw here would make the thread unreadable and
 * an id would differ on every read; r(r(s, xs), ys) = r(s, xs ++ ys), which `DeltaChannel` needs.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { REMOVE_ALL_ID, isRemoval, toMessageOrUndefined } from "./message-forms.ts";

/** Messages in order, with the positions of each id. A removed slot stays empty until `messages()`, so nothing shifts. */
class MessageLog {
  #slots: (BaseMessage | undefined)[] = [];
  /** Every position of an id; more than one only after a remove-all wrote the same id twice. The last one is replaced. */
  #positions = new Map<string, number[]>();

  clear(): void {
    this.#slots = [];
    this.#positions = new Map();
  }

  has(id: string): boolean {
    return this.#positions.has(id);
  }

  append(message: BaseMessage): void {
    const position = this.#slots.push(message) - 1;
    if (message.id === undefined) return;
    const known = this.#positions.get(message.id);
    if (known === undefined) this.#positions.set(message.id, [position]);
    else known.push(position);
  }

  replaceLatest(id: string, message: BaseMessage): void {
    const position = this.#positions.get(id)?.at(-1);
    if (position !== undefined) this.#slots[position] = message;
  }

  remove(id: string): void {
    for (const position of this.#positions.get(id) ?? []) this.#slots[position] = undefined;
    this.#positions.delete(id);
  }

  messages(): BaseMessage[] {
    return this.#slots.filter((message) => message !== undefined);
  }
}

/** One write's messages. Anything that stands for no message is skipped: its refusal came before the write. */
function readWrite(write: unknown): BaseMessage[] {
  const items: readonly unknown[] = Array.isArray(write) ? write : [write];
  return items.map(toMessageOrUndefined).filter((message) => message !== undefined);
}

function lastRemoveAll(messages: readonly BaseMessage[]): number {
  return messages.findLastIndex((message) => message.id === REMOVE_ALL_ID && isRemoval(message));
}

/** Removals take effect at the end of their write, so a later message of the same id in the write cancels one. */
function foldWrite(log: MessageLog, messages: readonly BaseMessage[]): void {
  const removeAll = lastRemoveAll(messages);
  if (removeAll >= 0) {
    log.clear();
    for (const message of messages.slice(removeAll + 1)) log.append(message);
    return;
  }
  const removed = new Set<string>();
  for (const message of messages) {
    const id = message.id;
    if (id === undefined || !log.has(id)) {
      if (!isRemoval(message)) log.append(message);
    } else if (isRemoval(message)) removed.add(id);
    else {
      removed.delete(id);
      log.replaceLatest(id, message);
    }
  }
  for (const id of removed) log.remove(id);
}

/** `writes` in the order they were made; each is one message or a list. Returns a new array. */
export function mergeMessageWrites(state: readonly BaseMessage[], writes: readonly unknown[]): BaseMessage[] {
  const log = new MessageLog();
  for (const message of readWrite(state)) log.append(message);
  for (const write of writes) foldWrite(log, readWrite(write));
  return log.messages();
}
