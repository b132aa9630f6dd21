/** Batches as the wire has them, from and to the domain's shapes. */
import type { BatchRefusal } from "../domain/batch/batch-refusal.ts";
import type { BatchView } from "../domain/batch/batch.ts";
import type { BatchDraft } from "../domain/batch/validate-batch.ts";
import { unreachable } from "../domain/shared/assert.ts";
import type { Batch, CreateBatchBody } from "../protocol/batches.ts";
import type { ApiRefusal } from "../protocol/errors.ts";

export function toBatchDraft(body: CreateBatchBody): BatchDraft {
  return {
    title: body.title,
    subagentType: body.subagent_type,
    items: body.items,
    files: body.files,
    maxLiveItems: body.max_live_items,
    maxRunningItems: body.max_running_items,
    maxAttempts: body.max_attempts,
    timeoutSeconds: body.timeout_seconds,
  };
}

export function toBatch(view: BatchView): Batch {
  return {
    batch_id: view.batchId,
    thread_id: view.threadId,
    title: view.title,
    subagent_type: view.subagentType,
    status: view.status,
    total_items: view.totalItems,
    counts: view.counts,
    max_live_items: view.maxLiveItems,
    max_running_items: view.maxRunningItems,
    max_attempts: view.maxAttempts,
    timeout_seconds: view.timeoutSeconds,
    created_at: new Date(view.createdAt).toISOString(),
    updated_at: new Date(view.updatedAt).toISOString(),
  };
}

export function toBatchRefusal(refusal: BatchRefusal): ApiRefusal {
  switch (refusal.reason) {
    case "idempotency_conflict":
      return { code: "idempotency_conflict", message: refusal.message };
    case "batch_limit":
    case "file_refused":
      return { code: "invalid_request", message: refusal.message, details: { path: [refusal.field] } };
    case "unknown_subagent_type":
      return { code: "invalid_request", message: refusal.message, details: { path: ["subagent_type"] } };
    case "batches_disabled":
      return { code: "forbidden", message: refusal.message };
    default:
      return unreachable(refusal);
  }
}
