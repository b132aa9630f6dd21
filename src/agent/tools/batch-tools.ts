/**
 * `batch_task`, `batch_status` and `cancel_batch`: a model's way to durable batches (delegation-behaviour 1.9).
 * Own the arguments, the texts and the result metadata; `BatchService` owns everything that lasts.
 * A submit is idempotent by `{run_id or thread_id}:{tool_call_id}`, so a repeated call after a crash finds its batch.
 * Results stay in rows and in the export: they never enter the conversation.
 */
import { z } from "zod";
import type { BatchRefusal } from "../../domain/batch/batch-refusal.ts";
import type { BatchView } from "../../domain/batch/batch.ts";
import type { BatchDraft } from "../../domain/batch/validate-batch.ts";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import { narrowSubagents } from "../../domain/assistant/agent-snapshot.ts";
import type { SubagentRegistry } from "../subagents/registry.ts";
import type { SubagentDefinition } from "../subagents/subagent-definition.ts";
import type { Tool, ToolOutcome } from "./tool.ts";

/** The batches of the current thread. */
export interface BatchService {
  /**
   * The same key and draft give the same batch, however often it is called (B9). `subagent` is the run's own, or why it has
   * none: a refusal only where the batch is new.
   */
  submit(draft: BatchDraft, submissionKey: string, subagent: RunSubagent): Promise<Result<BatchView, BatchRefusal>>;
  /** `undefined` when the thread has no such batch. */
  status(batchId: string): Promise<BatchView | undefined>;
  /** Gives the batch as it is when every item of it is terminal. */
  cancel(batchId: string): Promise<BatchView | undefined>;
}

export type RunSubagent = Result<SubagentDefinition, string>;

export interface BatchToolsParts {
  readonly batches: BatchService;
  readonly threadId: string;
  /** The run's snapshot: a batch names no subagent that `task` may not, and its items are of the definition `task` starts. */
  readonly subagents: Pick<SubagentRegistry, "permits" | "find" | "available" | "names">;
  /** Exact names of the tools the agent itself is held to: its items have no others. Absent or null for all. */
  readonly tools?: readonly string[] | null;
}

// Sizes are checked by the service, whose refusals name the item and the limit.
const submitParameters = z.strictObject({
  title: z.string().describe("A short name of the batch, at most 256 characters."),
  items: z
    .array(
      z.strictObject({
        key: z.string().describe("Unique in the batch, at most 128 characters; stable for the same piece of work."),
        prompt: z.string().describe("The whole task of this item; it sees nothing else of the conversation."),
      }),
    )
    .describe("Independent pieces of work."),
  subagent_type: z.string().describe("The subagent that runs every item."),
  files: z.array(z.string()).optional().describe("Workspace files every item may read, as they are now."),
  max_live_items: z.number().optional().describe("Items offered or running at once."),
  max_running_items: z.number().optional().describe("Items running at once."),
});

const batchParameters = z.strictObject({ batch_id: z.string().describe("The id `batch_task` answered.") });

/** With nobody to delegate to, batches can be followed and cancelled, not made. */
export function batchTools(parts: BatchToolsParts): readonly Tool[] {
  const followed = [batchStatus(parts), cancelBatch(parts)];
  return parts.subagents.names().length === 0 ? followed : [batchTask(parts), ...followed];
}

function batchTask(parts: BatchToolsParts): Tool {
  const { batches, threadId, subagents } = parts;
  return {
    name: "batch_task",
    description:
      "Starts many independent items as a durable background batch and returns at once with its id. Use it only when " +
      "the user asked for a batch or for work item by item. Results are exported as JSONL; they are not shown to you.",
    parameters: submitParameters,
    recovery: "safe",
    async execute(args, runtime) {
      const parsed = submitParameters.parse(args);
      const subagent = runSubagent(parts, parsed.subagent_type);
      if (!subagent.ok && !subagents.permits(parsed.subagent_type)) return refused(subagent.error);
      const draft: BatchDraft = {
        title: parsed.title,
        items: parsed.items,
        subagentType: parsed.subagent_type,
        files: parsed.files,
        maxLiveItems: parsed.max_live_items,
        maxRunningItems: parsed.max_running_items,
      };
      const submitted = await batches.submit(draft, `${runtime.runId ?? threadId}:${runtime.toolCallId}`, subagent);
      if (!submitted.ok) return refused(submitted.error.message);
      const batch = submitted.value;
      return told(
        batch,
        `Batch ${batch.batchId} accepted: ${batch.totalItems} items run in the background. ` +
          "Follow it with batch_status; its results are exported as JSONL.",
      );
    },
  };
}

/** As the run has it: what was edited, made or deleted after its acceptance is not of this run. */
function runSubagent({ subagents, tools = null }: BatchToolsParts, name: string): RunSubagent {
  const definition = subagents.find(name);
  if (definition === undefined) return err(`Unknown subagent type '${name}'. Available: ${subagents.available()}`);
  return ok({ ...definition, tools: narrowSubagents(definition.tools, tools) });
}

function batchStatus({ batches }: BatchToolsParts): Tool {
  return {
    name: "batch_status",
    description: "Tells how far a batch of this thread is: its status and its items by status.",
    parameters: batchParameters,
    recovery: "safe",
    async execute(args) {
      const batchId = batchParameters.parse(args).batch_id;
      const batch = await batches.status(batchId);
      return batch === undefined ? refused(unknownBatch(batchId)) : told(batch, describeBatch(batch));
    },
  };
}

function cancelBatch({ batches }: BatchToolsParts): Tool {
  return {
    name: "cancel_batch",
    description: "Cancels a batch of this thread: items that have not finished never will. Finished results are kept.",
    parameters: batchParameters,
    recovery: "safe",
    async execute(args) {
      const batchId = batchParameters.parse(args).batch_id;
      const batch = await batches.cancel(batchId);
      return batch === undefined ? refused(unknownBatch(batchId)) : told(batch, describeBatch(batch));
    },
  };
}

function describeBatch(batch: BatchView): string {
  const { pending, leased, completed, failed, cancelled } = batch.counts;
  return (
    `Batch ${batch.batchId} is ${batch.status}: ${completed} of ${batch.totalItems} items completed, ${failed} failed, ` +
    `${cancelled} cancelled, ${leased} running, ${pending} pending.`
  );
}

function unknownBatch(batchId: string): string {
  return `This thread has no batch ${batchId}.`;
}

function told(batch: BatchView, content: string): ToolOutcome {
  return {
    status: "success",
    content,
    additionalKwargs: {
      subagent_batch_id: batch.batchId,
      subagent_batch_status: batch.status,
      subagent_batch_total_items: batch.totalItems,
    },
  };
}

function refused(message: string): ToolOutcome {
  return { status: "error", content: `Error: ${message}`, additionalKwargs: { subagent_batch_error: message } };
}
