import { expect, test } from "vitest";
import { DELEGATIONS_KEPT_MAX, memoryJournal } from "../../../src/agent/subagents/delegation-journal.ts";

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

test("P8 it remembers the newest delegations only: a process that runs for months does not grow", () => {
  const journal = memoryJournal();
  const start = (task: number) =>
    journal.started({
      taskId: `task-${task}`,
      description: "",
      subagentType: "general-purpose",
      modelName: "scripted",
      checkpointNs: "",
    });
  for (let task = 0; task <= DELEGATIONS_KEPT_MAX; task += 1) expect(start(task)).toBe("recorded");
  expect(start(DELEGATIONS_KEPT_MAX)).toBe("already_recorded");
  expect(start(1)).toBe("already_recorded");
  expect(start(0)).toBe("recorded");
});
