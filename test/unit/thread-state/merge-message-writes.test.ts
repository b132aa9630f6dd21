import { AIMessage, HumanMessage, RemoveMessage } from "@langchain/core/messages";
import type { BaseMessage } from "@langchain/core/messages";
import { addMessages } from "@langchain/langgraph";
import { JsonPlusSerializer } from "@langchain/langgraph-checkpoint";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { prepareMessageWrite } from "../../../src/agent/thread-state/coerce-messages.ts";
import { mergeMessageWrites } from "../../../src/agent/thread-state/merge-message-writes.ts";
import { REMOVE_ALL_ID } from "../../../src/agent/thread-state/message-forms.ts";
import { countedIds } from "../../support/agent-fixture.ts";
import {
  type WriteSpec,
  arbitraryState,
  arbitraryWrites,
  buildItem,
  buildWrite,
  comparable,
} from "./message-write-specs.ts";

const human = (id: string, text = id) => new HumanMessage({ id, content: text });
const remove = (id: string) => new RemoveMessage({ id });
const texts = (messages: readonly BaseMessage[]) => messages.map((message) => message.text);
const ids = (messages: readonly BaseMessage[]) => messages.map((message) => message.id);

interface Folded {
  readonly messages: BaseMessage[];
  /** Per write: the unknown removal's id, "refused" for any other refusal, undefined when written. */
  readonly refusals: (string | undefined)[];
}

/** The public reducer, write by write; a write that throws changes nothing. */
function foldPublic(state: unknown[], writes: readonly WriteSpec[]): Folded {
  let messages = addMessages(state as BaseMessage[], []);
  const refusals = writes.map((write) => {
    try {
      messages = addMessages(messages, buildWrite(write) as BaseMessage[]);
      return undefined;
    } catch (error) {
      return /doesn't exist \('(.*)'\)/.exec((error as Error).message)?.[1] ?? "refused";
    }
  });
  return { messages, refusals };
}

/** Coerce and check, then reduce live; and once more as a replay of everything that was written. */
function foldOurs(state: unknown[], writes: readonly WriteSpec[]): Folded & { replayed: BaseMessage[] } {
  const newId = countedIds("minted");
  const initial = prepareMessageWrite(state as BaseMessage[], state, newId);
  if (!initial.ok) throw new Error(initial.error.message);
  const written: BaseMessage[][] = [];
  let messages = mergeMessageWrites(initial.value, []);
  const refusals = writes.map((write) => {
    const prepared = prepareMessageWrite(messages, buildWrite(write), newId);
    if (!prepared.ok) return prepared.error.reason === "unknown_removal" ? prepared.error.id : "refused";
    written.push(prepared.value);
    messages = mergeMessageWrites(messages, [prepared.value]);
    return undefined;
  });
  return { messages, refusals, replayed: mergeMessageWrites(initial.value, written) };
}

describe("parity with the public addMessages (R183, R184)", () => {
  test("5,000 generated sequences agree in messages, classes, order and refusals, live and replayed", () => {
    let refused = 0;
    let removedAll = 0;
    fc.assert(
      fc.property(arbitraryState, arbitraryWrites, (state, writes) => {
        const theirs = foldPublic(state.map(buildItem), writes);
        const ours = foldOurs(state.map(buildItem), writes);
        expect(ours.refusals).toEqual(theirs.refusals);
        expect(comparable(ours.messages)).toEqual(comparable(theirs.messages));
        expect(ours.replayed).toEqual(ours.messages);
        refused += theirs.refusals.filter((refusal) => refusal !== undefined).length;
        removedAll += JSON.stringify(writes).includes("removeAll") ? 1 : 0;
      }),
      { numRuns: 5_000 },
    );
    expect(refused, "sequences must reach the refusals").toBeGreaterThan(1_000);
    expect(removedAll, "sequences must reach remove-all").toBeGreaterThan(500);
  });

  const cases: [string, BaseMessage[], unknown[], string[]][] = [
    ["no writes leave the state", [human("a")], [], ["a"]],
    ["a known id is replaced in place", [human("a"), human("b")], [[human("a", "new")]], ["new", "b"]],
    [
      "of a doubled id the latest position is replaced",
      [human("a", "1"), human("a", "2")],
      [human("a", "3")],
      ["1", "3"],
    ],
    ["a removal deletes every position of a doubled id", [human("a"), human("b"), human("a")], [remove("a")], ["b"]],
    [
      "a later message in the write cancels a removal",
      [human("a"), human("b")],
      [[remove("a"), human("a", "new")]],
      ["new", "b"],
    ],
    [
      "a message in the next write comes at the end",
      [human("a"), human("b")],
      [remove("a"), human("a", "new")],
      ["b", "new"],
    ],
    ["a removal takes effect after its write", [human("a")], [[human("b"), remove("b"), human("c")]], ["a", "c"]],
    [
      "only what follows the last remove-all of a write stays",
      [human("a")],
      [[human("x"), remove(REMOVE_ALL_ID), human("y"), remove(REMOVE_ALL_ID), human("z")]],
      ["z"],
    ],
  ];
  test.each(cases)("%s", (_, state, writes, expected) => {
    const perWrite = writes.reduce<BaseMessage[]>(
      (messages, write) => addMessages(messages, write as BaseMessage[]),
      state,
    );
    expect(texts(mergeMessageWrites(state, writes))).toEqual(expected);
    expect(texts(perWrite)).toEqual(expected);
  });

  test("removal markers behind a remove-all stay literally, as in addMessages", () => {
    const write = [remove(REMOVE_ALL_ID), human("b"), remove("b")];
    expect(ids(mergeMessageWrites([human("a")], [write]))).toEqual(["b", "b"]);
    expect(ids(addMessages([human("a")], write))).toEqual(["b", "b"]);
  });
});

describe("replay", () => {
  const arbitraryRaw = fc.oneof(
    arbitraryWrites.map((writes) => writes.map(buildWrite)),
    fc.array(fc.anything(), { maxLength: 5 }),
  );

  test("r(r(s, xs), ys) = r(s, xs ++ ys) for any writes, raw and impossible ones included (R183)", () => {
    fc.assert(
      fc.property(arbitraryState, arbitraryRaw, arbitraryRaw, (specs, xs, ys) => {
        const state = specs.map(buildItem) as BaseMessage[];
        const apart = mergeMessageWrites(mergeMessageWrites(state, xs), ys);
        expect(apart).toEqual(mergeMessageWrites(state, [...xs, ...ys]));
      }),
      { numRuns: 2_000 },
    );
  });

  test("never throws, mints no id and changes nothing it was given", () => {
    fc.assert(
      fc.property(arbitraryRaw, (writes) => {
        expect(mergeMessageWrites([], writes)).toEqual(mergeMessageWrites([], writes));
      }),
      { numRuns: 2_000 },
    );
    const nameless = new HumanMessage("x");
    expect(ids(mergeMessageWrites([], [nameless, { type: "human", content: "y" }]))).toEqual([undefined, undefined]);
    expect(nameless.id).toBeUndefined();
  });

  test("an impossible removal or a null write that reached the channel is skipped, so the thread stays readable", () => {
    expect(ids(mergeMessageWrites([human("a")], [remove("nope"), null, undefined, 7, [null, human("b")]]))).toEqual([
      "a",
      "b",
    ]);
  });

  test("prepared writes fold alike after the saver's serializer (JsonPlusSerializer)", async () => {
    const serde = new JsonPlusSerializer();
    const through = async <T>(value: T): Promise<T> => {
      const [type, bytes] = await serde.dumpsTyped(value);
      return (await serde.loadsTyped(type, bytes)) as T;
    };
    await fc.assert(
      fc.asyncProperty(arbitraryWrites, async (specs) => {
        const newId = countedIds("m");
        const writes: BaseMessage[][] = [];
        for (const spec of specs) {
          const prepared = prepareMessageWrite(mergeMessageWrites([], writes), buildWrite(spec), newId);
          if (prepared.ok) writes.push(prepared.value);
        }
        const read = mergeMessageWrites([], await Promise.all(writes.map(through)));
        expect(comparable(read)).toEqual(comparable(mergeMessageWrites([], writes)));
        expect(ids(read)).toEqual(ids(mergeMessageWrites([], writes)));
      }),
      { numRuns: 300 },
    );
  });
});

describe("linear time (R183)", () => {
  /** Counts how often the reducer looks at a message's id, which is what a quadratic fold would do too often. */
  function idReads(count: number, removeEvery: number): number {
    let reads = 0;
    const writes = Array.from({ length: count }, (_, index) => {
      const isRemoval = index % removeEvery === removeEvery - 1;
      const message: BaseMessage = isRemoval
        ? remove(`m${index - 1}`)
        : new AIMessage({ content: "x", id: `m${index}` });
      const id = message.id;
      Object.defineProperty(message, "id", {
        get() {
          reads += 1;
          return id;
        },
      });
      return [message];
    });
    mergeMessageWrites([], writes);
    return reads;
  }

  test.each([3, 1_000_000])("eight times the writes cost eight times the work (a removal every %i)", (removeEvery) => {
    const ratio = idReads(8_000, removeEvery) / idReads(1_000, removeEvery);
    expect(ratio).toBeGreaterThan(7.9);
    expect(ratio).toBeLessThan(8.1);
  });
});
