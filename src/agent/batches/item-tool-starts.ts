/**
 * `once` and `ask` calls of a batch item. Its unit of redo is the item: nothing of an attempt is remembered but that it
 * was made, and call ids are new in each.
 * Owns what stays the same over attempts: the key of a call is made of the item, the tool, its arguments and which of the
 * equal calls it is, so a redo that does the same thing sends the same key, and one that does another thing does not. An
 * `ask` call of a later attempt may have been made by an earlier one, and nobody can be asked: the item fails.
 */
import { sha256 } from "../sha256.ts";
import type { KnownStarts, StartingCall, ToolStarts } from "../tools/tool-starts.ts";
import type { RunnableItem } from "./item-runner.ts";

export class ItemToolStarts implements ToolStarts {
  readonly #item: RunnableItem;
  readonly #keys = new Map<string, string>();
  readonly #equal = new Map<string, number>();

  constructor(item: RunnableItem) {
    this.#item = item;
  }

  look(call: StartingCall): KnownStarts {
    const earlier = call.recovery === "ask" ? this.#item.attempt - 1 : 0;
    return { earlier, idempotencyKey: this.#keyOf(call) };
  }

  /** The item's attempt is in its row already. */
  async note(): Promise<void> {}

  #keyOf({ toolCallId, tool, args }: StartingCall): string {
    const known = this.#keys.get(toolCallId);
    if (known !== undefined) return known;
    const what = JSON.stringify([tool, sorted(args)]);
    const place = (this.#equal.get(what) ?? 0) + 1;
    this.#equal.set(what, place);
    const key = sha256(JSON.stringify([this.#item.batchId, this.#item.ordinal, what, place]));
    this.#keys.set(toolCallId, key);
    return key;
  }
}

/** Models write the fields of an object in any order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const fields = Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1));
  return fields.map(([name, field]) => [name, sorted(field)]);
}
