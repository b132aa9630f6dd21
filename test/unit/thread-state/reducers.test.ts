import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvariantError } from "../../../src/domain/shared/assert.ts";
import {
  SKILL_CONTEXT_ENTRIES_MAX,
  SKILL_DESCRIPTION_CHARS_MAX,
  mergeArtifacts,
  mergeGoal,
  mergePromoted,
  mergeSandbox,
  mergeSkillContext,
  mergeTodos,
  mergeViewedImages,
} from "../../../src/agent/thread-state/reducers.ts";
import type { Goal, SkillContextEntry, Todo, ViewedImage } from "../../../src/agent/thread-state/thread-state.ts";

describe("merge_artifacts (R176)", () => {
  test.each([
    [undefined, ["a", "a", "b"], ["a", "b"]],
    [null, null, []],
    [["a"], null, ["a"]],
    [
      ["b", "a"],
      ["a", "c", "b"],
      ["b", "a", "c"],
    ],
    [["a"], [], ["a"]],
  ])("%j and %j give %j: deduplicated in first-seen order, the first write included", (current, incoming, expected) => {
    expect(mergeArtifacts(current, incoming)).toEqual(expected);
  });

  test("merging is associative and idempotent", () => {
    const list = fc.array(fc.constantFrom("a", "b", "c", "d"));
    fc.assert(
      fc.property(list, list, list, (a, b, c) => {
        expect(mergeArtifacts(mergeArtifacts(a, b), c)).toEqual(mergeArtifacts(a, mergeArtifacts(b, c)));
        expect(mergeArtifacts(mergeArtifacts(a, b), b)).toEqual(mergeArtifacts(a, b));
      }),
    );
  });
});

describe("merge_viewed_images (R177)", () => {
  const image = (size: number): ViewedImage => ({ mime_type: "image/png", size, actual_path: "/workspace/a.png" });
  test.each([
    [undefined, { a: image(1) }, { a: image(1) }],
    [{ a: image(1) }, null, { a: image(1) }],
    [{ a: image(1) }, {}, {}],
    [
      { a: image(1), b: image(2) },
      { b: image(3), c: image(4) },
      { a: image(1), b: image(3), c: image(4) },
    ],
    [null, null, {}],
  ])("%j and %j give %j: merge, new wins, {} clears", (current, incoming, expected) => {
    expect(mergeViewedImages(current, incoming)).toEqual(expected);
  });
});

describe("merge_todos and merge_goal (R178)", () => {
  const todo: Todo = { content: "write", status: "pending" };
  const goal: Goal = {
    objective: "ship",
    status: "active",
    created_at: "2026-01-01T00:00:00Z",
    updated_at: "2026-01-01T00:00:00Z",
    continuation_count: 0,
    max_continuations: 3,
    no_progress_count: 0,
    max_no_progress_continuations: 2,
  };

  test("null keeps the todos, an empty list replaces them", () => {
    expect(mergeTodos([todo], null)).toEqual([todo]);
    expect(mergeTodos([todo], [])).toEqual([]);
    expect(mergeTodos(undefined, undefined)).toBeNull();
  });

  test("null keeps the active goal, another goal replaces it", () => {
    expect(mergeGoal(goal, null)).toBe(goal);
    expect(mergeGoal(goal, { ...goal, objective: "rest" })?.objective).toBe("rest");
    expect(mergeGoal(null, null)).toBeNull();
  });
});

describe("merge_promoted (R179)", () => {
  const of = (catalog_hash: string, ...names: string[]) => ({ catalog_hash, names });
  test.each([
    ["nothing incoming keeps", of("h", "a"), null, of("h", "a")],
    ["an empty object keeps", of("h", "a"), {} as never, of("h", "a")],
    ["the first write is deduplicated", null, of("h", "a", "a"), of("h", "a")],
    ["another hash replaces", of("h1", "a"), of("h2", "b", "b"), of("h2", "b")],
    ["another hash replaces even by nothing", of("h1", "a"), of("h2"), of("h2")],
    ["the same hash unites in order", of("h", "b", "a"), of("h", "a", "c"), of("h", "b", "a", "c")],
    ["a malformed old value is replaced", { names: 7 } as never, of("h", "a"), of("h", "a")],
  ])("%s", (_, current, incoming, expected) => {
    expect(mergePromoted(current, incoming)).toEqual(expected);
  });
});

describe("merge_skill_context (R181)", () => {
  const skill = (path: string, loaded_at = 1): SkillContextEntry => ({ name: path, path, description: "d", loaded_at });

  test("only references survive, normalised, also when nothing comes in", () => {
    const legacy = { ...skill("p"), body: "the whole skill", description: "  a \n b  ", loaded_at: 1.5 };
    expect(mergeSkillContext([legacy], null)).toEqual([{ name: "p", path: "p", description: "a b", loaded_at: 0 }]);
    const long = mergeSkillContext([{ ...skill("p"), description: "x".repeat(SKILL_DESCRIPTION_CHARS_MAX + 1) }], null);
    expect(long[0]?.description).toHaveLength(SKILL_DESCRIPTION_CHARS_MAX);
  });

  test("an entry without a path is dropped", () => {
    expect(mergeSkillContext(null, [{ name: "n", description: "d", loaded_at: 1 } as never])).toEqual([]);
  });

  test("the same path moves to the end and is replaced", () => {
    expect(mergeSkillContext([skill("a"), skill("b")], [skill("a", 2)])).toEqual([skill("b"), skill("a", 2)]);
  });

  test("the last eight stay, cut only when something came in", () => {
    const many = Array.from({ length: SKILL_CONTEXT_ENTRIES_MAX + 2 }, (_, index) => skill(`p${index}`));
    expect(mergeSkillContext(many, null)).toHaveLength(SKILL_CONTEXT_ENTRIES_MAX + 2);
    expect(mergeSkillContext(many, [skill("new")]).map((entry) => entry.path)).toEqual([
      ...many.slice(3).map((entry) => entry.path),
      "new",
    ]);
  });
});

describe("sandbox", () => {
  test.each([
    ["nothing incoming keeps", { sandbox_id: "s" }, null, { sandbox_id: "s" }],
    ["nothing held takes", undefined, { sandbox_id: "s" }, { sandbox_id: "s" }],
    ["absent and null ids are the same", { sandbox_id: null }, {}, { sandbox_id: null }],
    ["neither", null, undefined, null],
  ])("%s", (_, current, incoming, expected) => {
    expect(mergeSandbox(current, incoming)).toEqual(expected);
  });

  test("the same id keeps the held object", () => {
    const held = { sandbox_id: "s" };
    expect(mergeSandbox(held, { sandbox_id: "s" })).toBe(held);
  });

  test("another id is an isolation fault", () => {
    expect(() => mergeSandbox({ sandbox_id: "mine" }, { sandbox_id: "theirs" })).toThrow(InvariantError);
  });
});
