import { expect, it } from "vitest";
import { toListedThread } from "../../../src/gateway/listed-thread.ts";
import { searchThreadsBodySchema, type Thread } from "../../../src/protocol/threads.ts";

const THREAD: Thread = {
  thread_id: "t",
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-02T00:00:00.000Z",
  metadata: { title: "Tides", tags: ["a", "b"], deep: { list: [{ name: "x" }] }, none: null },
  status: "idle",
  values: null,
  interrupts: {},
};
const listed = (body: object) => toListedThread(THREAD, searchThreadsBodySchema.parse(body));

it("shows the selected fields alone; all of them without a selection", () => {
  expect(listed({})).toEqual(THREAD);
  expect(listed({ select: ["thread_id", "status"] })).toEqual({ thread_id: "t", status: "idle" });
});

it("answers places of the metadata, from either end of a list; null where nothing is", () => {
  const extract = {
    title: "metadata.title",
    last: "metadata.tags[-1]",
    name: "metadata.deep.list[0].name",
    none: "metadata.none",
    missing: "metadata.deep.list[7].name",
    inherited: "metadata.constructor",
    through: "metadata.title.length",
  };
  expect(listed({ select: ["thread_id"], extract })).toEqual({
    thread_id: "t",
    extracted: { title: "Tides", last: "b", name: "x", none: null, missing: null, inherited: null, through: null },
  });
});

it("refuses what a list does not know, by name", () => {
  for (const body of [
    { select: ["values"] },
    { extract: { last: "values.messages[-1]" } },
    { extract: { all: "metadata" } },
    { extract: Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`n${at}`, "metadata.x"])) },
  ]) {
    const parsed = searchThreadsBodySchema.safeParse(body);
    expect(parsed.error?.issues[0]?.path[0]).toBe(Object.keys(body)[0]);
  }
});
