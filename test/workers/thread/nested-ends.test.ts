import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { expect, it } from "vitest";
import { toDelegationKwargs } from "../../../src/domain/delegation/delegation-result.ts";
import { CommitEvents } from "../../../src/durable-objects/commit-events.ts";
import { DelegationStore } from "../../../src/platform/durable-storage/delegation-store.ts";
import { EventOutbox } from "../../../src/platform/durable-storage/event-outbox.ts";
import { ensureSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { ToolStartStore } from "../../../src/platform/durable-storage/tool-start-store.ts";
import { DurableWorkspace } from "../../../src/platform/workspace/durable-workspace.ts";
import { StagedWorkspace } from "../../../src/platform/workspace/staged-workspace.ts";
import { inFreshObject } from "../../support/object-storage.ts";

it("a delegation that is cancelled ends those its child had open in the log, innermost first, and no others", async () => {
  await inFreshObject((storage) => {
    ensureSchema(storage);
    const delegations = new DelegationStore(storage.sql);
    const outbox = new EventOutbox(storage.sql);
    const now = () => 0;
    const events = new CommitEvents({
      outbox,
      delegations,
      toolStarts: new ToolStartStore(storage.sql),
      staging: new StagedWorkspace(new DurableWorkspace({ sql: storage.sql, now })),
      currentRunId: () => "run",
      forgetChild: () => undefined,
      onStep: () => undefined,
      now,
      report: () => undefined,
    });
    const open = { runId: "run", subagentType: "bash", steps: 0, cancelled: false };
    delegations.save({ ...open, taskId: "outer", checkpointNs: "tools:a" });
    delegations.save({ ...open, taskId: "inner", checkpointNs: "tools:a|tools:b" });
    delegations.save({ ...open, taskId: "innermost", checkpointNs: "tools:a|tools:b|tools:c" });
    delegations.save({ ...open, taskId: "sibling", checkpointNs: "tools:ab" });
    const result = new ToolMessage({
      id: "m",
      tool_call_id: "outer",
      content: "cancelled",
      additional_kwargs: toDelegationKwargs({ status: "cancelled", error: "Cancelled by user" }),
    });
    storage.transactionSync(() => {
      events.onWrites({
        checkpointNs: "",
        checkpointId: "c",
        taskId: "task",
        taskPath: "~tools",
        writes: [["messages", [result]]],
      });
    });
    const ends = outbox.pending()!.events.filter(({ event_type: type }) => type === "subagent.end");
    expect(ends.map(({ content }) => content)).toMatchObject([
      { task_id: "innermost", status: "cancelled" },
      { task_id: "inner", status: "cancelled" },
      { task_id: "outer", status: "cancelled" },
    ]);
    expect(delegations.ofRun("run").map(({ taskId }) => taskId)).toEqual(["sibling"]);
  });
});

it("R117: a step that no event can be made of is reported with its place, and the steps behind it keep theirs", async () => {
  await inFreshObject((storage) => {
    ensureSchema(storage);
    const delegations = new DelegationStore(storage.sql);
    const outbox = new EventOutbox(storage.sql);
    const now = () => 0;
    const reported: unknown[] = [];
    const events = new CommitEvents({
      outbox,
      delegations,
      toolStarts: new ToolStartStore(storage.sql),
      staging: new StagedWorkspace(new DurableWorkspace({ sql: storage.sql, now })),
      currentRunId: () => "run",
      forgetChild: () => undefined,
      onStep: () => undefined,
      now,
      report: (what, details) => void reported.push({ what, ...details }),
    });
    delegations.save({
      runId: "run",
      subagentType: "bash",
      taskId: "task",
      checkpointNs: "tools:a",
      steps: 3,
      cancelled: false,
    });
    const malformed = new AIMessage({ id: "m1", content: "" });
    Object.defineProperty(malformed, "text", { value: undefined });
    const messages = [malformed, new AIMessage({ id: "m2", content: "fine" })];
    storage.transactionSync(() => {
      events.onWrites({
        checkpointNs: "tools:a",
        checkpointId: "c",
        taskId: "task",
        taskPath: "~agent",
        writes: [["messages", messages]],
      });
    });
    expect(reported).toEqual([
      {
        what: "subagent step refused",
        reason: "malformed_step",
        field: "message",
        run_id: "run",
        task_id: "task",
        message_index: 3,
      },
    ]);
    expect(outbox.pending()!.events.map(({ metadata }) => metadata)).toEqual([{ task_id: "task", message_index: 4 }]);
  });
});
