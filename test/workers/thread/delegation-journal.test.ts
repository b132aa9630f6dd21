import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { STEP_CHARS_MAX } from "../../../src/domain/delegation/subagent-steps.ts";
import { ThreadDelegationJournal } from "../../../src/durable-objects/delegation-journal.ts";
import { DelegationStore } from "../../../src/platform/durable-storage/delegation-store.ts";
import { EventOutbox } from "../../../src/platform/durable-storage/event-outbox.ts";
import { ensureSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { withUsage } from "../../support/reply-model.ts";
import { inFreshObject } from "../../support/object-storage.ts";

const START = {
  taskId: "task",
  description: "look",
  subagentType: "general-purpose",
  modelName: "m",
  checkpointNs: "tools:a",
};

function withJournal(
  runId: string | undefined,
  use: (parts: { journal: ThreadDelegationJournal; delegations: DelegationStore; outbox: EventOutbox }) => void,
): Promise<void> {
  return inFreshObject((storage) => {
    ensureSchema(storage);
    const delegations = new DelegationStore(storage.sql);
    const outbox = new EventOutbox(storage.sql);
    const ports = { storage, delegations, outbox, currentRunId: () => runId, now: () => 0, report: () => undefined };
    use({ journal: new ThreadDelegationJournal(ports), delegations, outbox });
  });
}

describe("the delegation journal", () => {
  it("records a start once per task id: the mark and its subagent.start", async () => {
    await withJournal("run", ({ journal, delegations, outbox }) => {
      expect([journal.started(START), journal.started(START)]).toEqual(["recorded", "already_recorded"]);
      const mark = {
        taskId: "task",
        runId: "run",
        subagentType: "general-purpose",
        checkpointNs: "tools:a",
        steps: 0,
        cancelled: false,
      };
      expect(delegations.ofRun("run")).toEqual([mark]);
      expect(outbox.pending()!.events.map(({ event_type: type }) => type)).toEqual(["subagent.start"]);
    });
  });

  it("R116 R66 numbers the steps of a child of another process and stores each at once, with what its answers used", async () => {
    await withJournal("run", ({ journal, delegations, outbox }) => {
      journal.started(START);
      const said = new AIMessage({ id: "m1", content: "😀".repeat(STEP_CHARS_MAX + 1) });
      journal.stepped("task", withUsage(said, { input: 5, output: 2 }));
      journal.stepped("task", new HumanMessage("no step"));
      journal.stepped("task", new ToolMessage({ id: "m2", tool_call_id: "c", name: "look", content: "seen" }));
      journal.stepped("unknown", new AIMessage({ id: "m3", content: "nobody's" }));
      const [, ...steps] = outbox.pending()!.events;
      expect(steps.map(({ event_type, metadata, content }) => [event_type, metadata, content])).toEqual([
        [
          "subagent.step",
          { task_id: "task", message_index: 0 },
          expect.objectContaining({ kind: "ai", text: "😀".repeat(STEP_CHARS_MAX), truncated: true }),
        ],
        [
          "subagent.step",
          { task_id: "task", message_index: 1 },
          expect.objectContaining({ kind: "tool", text: "seen", tool_name: "look" }),
        ],
      ]);
      expect(delegations.find("task")).toMatchObject({ steps: 2 });
      const reported = { answers: 1, input_tokens: 5, output_tokens: 2, total_tokens: 7 };
      expect(outbox.usageOf("run")).toEqual([{ caller: "subagent:general-purpose", model_name: null, reported }]);
    });
  });

  it("takes a start outside a run for a fault and stores nothing of it: no run would ever end it", async () => {
    await withJournal(undefined, ({ journal, delegations, outbox }) => {
      expect(() => journal.started(START)).toThrow("outside a run");
      expect(delegations.find("task")).toBeUndefined();
      expect(outbox.pending()).toBeUndefined();
    });
  });

  it("keeps the watcher of a call that was started again when the earlier call's is disposed of", async () => {
    await withJournal("run", ({ journal }) => {
      journal.started(START);
      const told: string[] = [];
      const disposeOld = journal.watchCancel("task", () => void told.push("old"));
      const disposeNew = journal.watchCancel("task", () => void told.push("new"));
      disposeOld();
      expect(journal.requestCancel("run", "task")).toBe(true);
      expect(told).toEqual(["new"]);
      disposeNew();
      journal.requestCancel("run", "task");
      expect(told).toEqual(["new"]);
    });
  });
});
