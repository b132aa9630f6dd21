import { expect, test } from "vitest";
import { memoryJournal } from "../../../src/agent/subagents/delegation-journal.ts";

test("the disposer of a watcher that was replaced leaves the newer one: its delegation can still be cancelled", () => {
  const journal = memoryJournal();
  const told: string[] = [];
  const disposeOld = journal.watchCancel!("task", () => void told.push("old"));
  const disposeNew = journal.watchCancel!("task", () => void told.push("new"));
  disposeOld();
  journal.cancel("task");
  expect(told).toEqual(["new"]);
  disposeNew();
  journal.cancel("task");
  expect(told).toEqual(["new"]);
});
