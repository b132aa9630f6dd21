import { describe, expect, test } from "vitest";
import { type BoundaryMessage, findRunStart } from "../../../src/domain/delegation/run-boundary.ts";

const human = (id: string, more: Partial<BoundaryMessage> = {}): BoundaryMessage => ({
  id,
  isHuman: true,
  isHidden: false,
  runId: undefined,
  ...more,
});
const other = (id: string): BoundaryMessage => ({ id, isHuman: false, isHidden: false, runId: undefined });
const hidden = (id: string): BoundaryMessage => human(id, { isHidden: true });

const OLD = [human("h0"), other("a0"), other("t0")];
const BEFORE = new Set(["h0", "a0", "t0"]);

/** Messages, the run, what is known of before it, and the ids that are the run's own. */
type Case = [
  string,
  readonly BoundaryMessage[],
  string | undefined,
  ReadonlySet<string> | undefined,
  readonly string[],
];

const MATRIX: readonly Case[] = [
  ["no run id: everything", [...OLD, human("h1"), other("a1")], undefined, BEFORE, ["h0", "a0", "t0", "h1", "a1"]],
  ["a Human tagged with this run", [...OLD, human("h1", { runId: "r1" }), other("a1")], "r1", BEFORE, ["a1"]],
  ["the same, nothing known of before", [...OLD, human("h1", { runId: "r1" }), other("a1")], "r1", undefined, ["a1"]],
  ["a Human without a tag that is new", [...OLD, human("h1"), other("a1")], "r1", BEFORE, ["a1"]],
  ["a Human without a tag, nothing known of before", [human("h1"), other("a1")], "r1", undefined, ["a1"]],
  ["a legacy Human that stood before: after the last of before", [...OLD, other("a1")], "r1", BEFORE, ["a1"]],
  [
    "a Human tagged with another run",
    [human("h0", { runId: "r0" }), other("a0"), other("a1")],
    "r1",
    new Set(["a0"]),
    ["a1"],
  ],
  ["the same, nothing known of before: nothing", [human("h0", { runId: "r0" }), other("a0")], "r1", undefined, []],
  ["no Human: after the last of before", [other("a0"), other("t0"), other("a1")], "r1", BEFORE, ["a1"]],
  ["no Human, nothing known of before: nothing", [other("a0"), other("a1")], "r1", undefined, []],
  ["no Human, an empty thread before: everything", [other("a1"), other("t1")], "r1", new Set(), ["a1", "t1"]],
  ["two Humans of one input: after the later", [...OLD, human("h1"), human("h2"), other("a1")], "r1", BEFORE, ["a1"]],
  [
    "a hidden Human stored in the middle of the run begins none",
    [...OLD, human("h1"), other("a1"), hidden("reminder"), other("t1")],
    "r1",
    BEFORE,
    ["a1", "reminder", "t1"],
  ],
  [
    "a hidden Human behind a legacy one: after the last of before",
    [...OLD, other("a1"), hidden("reminder"), other("t1")],
    "r1",
    BEFORE,
    ["a1", "reminder", "t1"],
  ],
  [
    "an older checkpoint: what came after it is not known as before",
    [human("h0"), other("a0"), other("a1")],
    "r1",
    new Set(["h0"]),
    ["a0", "a1"],
  ],
];

describe("R46 R47 the run's own messages", () => {
  test.each(MATRIX)("%s", (...[, messages, runId, before, own]) => {
    expect(messages.slice(findRunStart(messages, runId, before)).map(({ id }) => id)).toEqual(own);
  });
});
