import { describe, expect, it } from "vitest";
import { SubagentRegistry } from "../../../src/agent/subagents/registry.ts";
import { batchTools, type BatchService, type RunSubagent } from "../../../src/agent/tools/batch-tools.ts";
import type { Tool, ToolOutcome, ToolRuntime } from "../../../src/agent/tools/tool.ts";
import { parseDeputyConfig } from "../../../src/config.ts";
import type { BatchView } from "../../../src/domain/batch/batch.ts";
import type { BatchDraft } from "../../../src/domain/batch/validate-batch.ts";
import { err, ok } from "../../../src/domain/shared/result.ts";
import { NOW } from "../../support/batches.ts";

const view = (over: Partial<BatchView> = {}): BatchView => ({
  batchId: "b1",
  threadId: "t1",
  title: "Numbers",
  subagentType: "bash",
  status: "running",
  totalItems: 4,
  counts: { pending: 1, leased: 1, completed: 1, failed: 1, cancelled: 0 },
  maxLiveItems: 100,
  maxRunningItems: 3,
  maxAttempts: 3,
  timeoutSeconds: 780,
  createdAt: NOW,
  updatedAt: NOW,
  ...over,
});

/** Batches of one thread that only has `b1`; keeps what was submitted. */
class OneBatch implements BatchService {
  readonly submitted: { draft: BatchDraft; key: string; subagent: RunSubagent }[] = [];

  async submit(draft: BatchDraft, key: string, subagent: RunSubagent): ReturnType<BatchService["submit"]> {
    this.submitted.push({ draft, key, subagent });
    if (draft.items.length === 0) {
      return err({ reason: "batch_limit", field: "items", message: "items must hold at least 1 item" });
    }
    return ok(view({ totalItems: draft.items.length }));
  }

  async status(batchId: string): Promise<BatchView | undefined> {
    return batchId === "b1" ? view() : undefined;
  }

  async cancel(batchId: string): Promise<BatchView | undefined> {
    if (batchId !== "b1") return undefined;
    return view({ status: "cancelled", counts: { pending: 0, leased: 0, completed: 1, failed: 1, cancelled: 2 } });
  }
}

function run(tool: Tool | undefined, args: Record<string, unknown>, runId?: string): Promise<ToolOutcome> {
  if (tool === undefined) throw new Error("no such tool");
  const runtime = { toolCallId: "call_1", runId, attempt: 1 } as unknown as ToolRuntime;
  return tool.execute(tool.parameters.parse(args), runtime);
}

const ARGS = { title: "Numbers", subagent_type: "bash", items: [{ key: "a", prompt: "p" }] };

describe("batch tools", () => {
  const batches = new OneBatch();
  const subagents = new SubagentRegistry(parseDeputyConfig({}).subagents);
  const [batchTask, batchStatus, cancelBatch] = batchTools({ batches, threadId: "t1", subagents });

  it("B9: submits under {run or thread}:{tool call}, so a call that recovery runs again finds its batch", async () => {
    expect(batchTask?.recovery).toBe("safe");
    await run(batchTask, ARGS, "run-9");
    await run(batchTask, { ...ARGS, max_live_items: 5, max_running_items: 2, files: ["/workspace/a"] });
    expect(batches.submitted.map(({ key }) => key)).toEqual(["run-9:call_1", "t1:call_1"]);
    expect(batches.submitted[1]?.draft).toMatchObject({ maxLiveItems: 5, maxRunningItems: 2, files: ["/workspace/a"] });
  });

  it("an agent's own list of tools binds the items it has made, as it binds its children", async () => {
    const toolsOf = async (type: string, tools: readonly string[] | null) => {
      const held = new OneBatch();
      const [tool] = batchTools({ batches: held, threadId: "t1", subagents, tools });
      await run(tool, { ...ARGS, subagent_type: type });
      const [submitted] = held.submitted;
      return submitted?.subagent.ok === true ? submitted.subagent.value.tools : "refused";
    };
    expect(await toolsOf("general-purpose", ["batch_task", "read_file"])).toEqual(["batch_task", "read_file"]);
    expect(await toolsOf("bash", ["batch_task", "read_file", "bash"])).toEqual(["bash", "read_file"]);
    expect(await toolsOf("bash", ["batch_task"])).toEqual([]);
    expect(await toolsOf("general-purpose", null)).toBeNull();
  });

  it("R54: answers at once with the batch's id, status and total in the metadata and no results", async () => {
    expect(await run(batchTask, ARGS)).toEqual({
      status: "success",
      content: expect.stringMatching(/^Batch b1 accepted: 1 items/) as string,
      additionalKwargs: {
        subagent_batch_id: "b1",
        subagent_batch_status: "running",
        subagent_batch_total_items: 1,
      },
    });
  });

  it("P5: a refusal and an unknown batch are error results that say why", async () => {
    expect(await run(batchTask, { ...ARGS, items: [] })).toEqual({
      status: "error",
      content: "Error: items must hold at least 1 item",
      additionalKwargs: { subagent_batch_error: "items must hold at least 1 item" },
    });
    for (const tool of [batchStatus, cancelBatch]) {
      expect(await run(tool, { batch_id: "b2" })).toMatchObject({
        status: "error",
        additionalKwargs: { subagent_batch_error: "This thread has no batch b2." },
      });
    }
  });

  it("status and cancel tell the counts", async () => {
    expect((await run(batchStatus, { batch_id: "b1" })).content).toBe(
      "Batch b1 is running: 1 of 4 items completed, 1 failed, 0 cancelled, 1 running, 1 pending.",
    );
    expect(await run(cancelBatch, { batch_id: "b1" })).toMatchObject({
      status: "success",
      additionalKwargs: { subagent_batch_status: "cancelled" },
    });
  });

  it("refuses arguments it does not know", () => {
    expect(() => batchTask?.parameters.parse({ ...ARGS, concurrency: 4 })).toThrow(/concurrency/);
  });
});
