/**
 * Generated message writes, as recipes: each side of a differential test builds its own objects from the same recipe,
 * because the public `addMessages` stamps ids into the objects it is given.
 */
import { AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage } from "@langchain/core/messages";
import type { BaseMessage } from "@langchain/core/messages";
import * as fc from "fast-check";
import { REMOVE_ALL_ID } from "../../../src/agent/thread-state/message-forms.ts";

const KNOWN_IDS = ["a", "b", "c", "d"] as const;

export interface ItemSpec {
  readonly form:
    | "object"
    | "chunk"
    | "dict"
    | "role"
    | "serialized"
    | "tuple"
    | "string"
    | "tool"
    | "remove"
    | "removeDict"
    | "removeAll"
    | "null"
    | "nonsense";
  readonly id: string | undefined;
  /** Unique within a sequence, so that a message can be told from its replacement. */
  readonly text: string;
}

export type WriteSpec =
  | { readonly kind: "list"; readonly items: readonly ItemSpec[] }
  | { readonly kind: "single"; readonly item: ItemSpec }
  | { readonly kind: "null" };

const BUILD: Readonly<Record<ItemSpec["form"], (text: string, id: { id?: string }) => unknown>> = {
  object: (text, id) => new HumanMessage({ content: text, ...id }),
  chunk: (text, id) => new AIMessageChunk({ content: text, ...id }),
  tool: (text, id) => new ToolMessage({ content: text, tool_call_id: `call-${text}`, ...id }),
  dict: (text, id) => ({ type: "human", content: text, ...id }),
  role: (text, id) => ({ role: "assistant", content: text, ...id }),
  serialized: (text, id) => JSON.parse(JSON.stringify(new AIMessage({ content: text, ...id }))) as unknown,
  tuple: (text) => ["user", text],
  string: (text) => text,
  remove: (_, { id }) => new RemoveMessage({ id: id ?? "a" }),
  removeDict: (_, { id }) => ({ type: "remove", id: id ?? "a" }),
  removeAll: () => new RemoveMessage({ id: REMOVE_ALL_ID }),
  null: () => null,
  nonsense: (text) => ({ type: "no such type", content: text }),
};

export function buildItem({ form, text, id }: ItemSpec): unknown {
  return BUILD[form](text, id === undefined ? {} : { id });
}

export function buildWrite(spec: WriteSpec): unknown {
  if (spec.kind === "null") return null;
  return spec.kind === "single" ? buildItem(spec.item) : spec.items.map(buildItem);
}

const COMMON_FORMS = ["object", "object", "chunk", "dict", "role", "serialized", "string", "tool"] as const;
const REMOVALS = ["remove", "remove", "removeDict", "removeAll"] as const;

const arbitraryId = fc.option(fc.constantFrom(...KNOWN_IDS), { nil: undefined, freq: 4 });
const arbitraryForm: fc.Arbitrary<ItemSpec["form"]> = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...COMMON_FORMS) },
  { weight: 4, arbitrary: fc.constantFrom(...REMOVALS) },
  { weight: 1, arbitrary: fc.constantFrom("tuple", "null", "nonsense") },
);
const arbitraryItem = fc.record({ form: arbitraryForm, id: arbitraryId, text: fc.constant("") });
/** A tuple alone would be read as a list, by both sides. */
const arbitraryWrite: fc.Arbitrary<WriteSpec> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant("list" as const), items: fc.array(arbitraryItem, { maxLength: 6 }) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("single" as const), item: arbitraryItem }) },
  { weight: 1, arbitrary: fc.constant({ kind: "null" as const }) },
);

function numbered(writes: readonly WriteSpec[]): WriteSpec[] {
  let count = 0;
  const name = (item: ItemSpec): ItemSpec => ({ ...item, text: `t${++count}` });
  return writes.map((write) => {
    if (write.kind === "null") return write;
    return write.kind === "single"
      ? { kind: "single", item: name(write.item) }
      : { kind: "list", items: write.items.map(name) };
  });
}

export const arbitraryWrites: fc.Arbitrary<WriteSpec[]> = fc.array(arbitraryWrite, { maxLength: 8 }).map(numbered);

/** States may hold one id twice: a remove-all write keeps what follows it literally. */
export const arbitraryState: fc.Arbitrary<ItemSpec[]> = fc
  .array(
    fc.record({ form: fc.constantFrom("object", "tool", "chunk", "remove"), id: arbitraryId, text: fc.constant("") }),
    {
      maxLength: 6,
    },
  )
  .map((items) => items.map((item, index) => ({ ...item, text: `s${index}` })));

/** What two messages must share to count as the same. Minted ids differ by side; every text is unique. */
export function comparable(messages: readonly BaseMessage[]): unknown[] {
  const known: readonly (string | undefined)[] = [...KNOWN_IDS, REMOVE_ALL_ID];
  return messages.map((message) => ({
    class: message.constructor.name,
    type: message.getType(),
    id: known.includes(message.id) ? message.id : `minted ${typeof message.id}`,
    content: message.content,
    toolCallId: ToolMessage.isInstance(message) ? message.tool_call_id : undefined,
  }));
}
