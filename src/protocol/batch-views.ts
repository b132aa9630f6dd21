/** Batches from the domain's terms to the wire's: the one translation, for HTTP answers and RPC results alike. */
import type { BatchView, ItemResult, ItemView, TokenUsage } from "../domain/batch/batch.ts";
import type { Batch, BatchItem, BatchProgress, BatchResultLine } from "./batches.ts";

export function toBatch(view: BatchView): Batch {
  return {
    ...toBatchProgress(view),
    thread_id: view.threadId,
    title: view.title,
    subagent_type: view.subagentType,
    max_live_items: view.maxLiveItems,
    max_running_items: view.maxRunningItems,
    max_attempts: view.maxAttempts,
    timeout_seconds: view.timeoutSeconds,
    created_at: new Date(view.createdAt).toISOString(),
    updated_at: new Date(view.updatedAt).toISOString(),
  };
}

export function toBatchProgress(view: BatchView): BatchProgress {
  return { batch_id: view.batchId, status: view.status, total_items: view.totalItems, counts: { ...view.counts } };
}

export function toBatchItem(view: ItemView): BatchItem {
  const { ordinal, key, status, attempts, deferrals, preview, error } = view;
  return { ordinal, key, status, attempts, deferrals, preview, error };
}

export function toBatchResultLine(item: ItemResult): BatchResultLine {
  const { key, status, result, error, attempts, deferrals } = item;
  return {
    key,
    status,
    result,
    error,
    attempts,
    deferrals,
    usage: item.usage === null ? null : toUsage(item.usage),
    ...(item.outputs === null ? {} : { outputs: { ...item.outputs } }),
  };
}

function toUsage({ inputTokens, outputTokens, totalTokens }: TokenUsage): NonNullable<BatchResultLine["usage"]> {
  return { input_tokens: inputTokens, output_tokens: outputTokens, total_tokens: totalTokens };
}
