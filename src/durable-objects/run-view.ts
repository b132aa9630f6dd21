/** A run row as the API shows it. */
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { Run } from "../protocol/runs.ts";

export function toRun(run: RunRecord, threadId: string): Run {
  const { body } = run.command;
  const { metadata, multitask_strategy, assistant_id, ...kwargs } = body;
  return {
    run_id: run.runId,
    thread_id: threadId,
    assistant_id,
    created_at: new Date(run.createdAt).toISOString(),
    updated_at: new Date(run.updatedAt).toISOString(),
    status: run.status,
    metadata: metadata ?? {},
    multitask_strategy,
    kwargs,
    error: run.error,
    ...(run.usage === null ? {} : { usage: [...run.usage] }),
  };
}
