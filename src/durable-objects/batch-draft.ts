/** A batch create from the wire to the domain, and the domain's refusals as the API's. */
import type { BatchRefusal } from "../domain/batch/batch-refusal.ts";
import type { BatchDraft } from "../domain/batch/validate-batch.ts";
import { unreachable } from "../domain/shared/assert.ts";
import type { CreateBatchBody } from "../protocol/batches.ts";
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
