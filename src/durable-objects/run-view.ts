/** A run row as the API shows it. */
import { ADJUSTED_OPTIONS_KEY } from "../domain/run/adjusted-options.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { Run } from "../protocol/runs.ts";

export function toRun(run: RunRecord, threadId: string): Run {
  const { body } = run.command;
  const { metadata: _shown, multitask_strategy, assistant_id, ...kwargs } = body;
  return {
    run_id: run.runId,
    thread_id: threadId,
    assistant_id,
    created_at: new Date(run.createdAt).toISOString(),
    updated_at: new Date(run.updatedAt).toISOString(),
    status: run.status,
    metadata: runMetadata(run),
    multitask_strategy,
    ...(run.cancel?.reason === undefined ? {} : { cancel_reason: run.cancel.reason }),
    kwargs,
    error: run.error,
    stop_reason: run.notes?.stop_reason ?? null,
    assistant_version: run.command.assistant_version ?? run.command.agent?.assistantVersion ?? null,
    graph_version: run.notes?.graph_version ?? null,
    ...(run.usage === null ? {} : { usage: [...run.usage] }),
  };
}

/** The client's metadata, and what the server has to say in it. */
export function runMetadata({ command, notes }: RunRecord): Record<string, unknown> {
  const adjusted = notes?.adjusted_options;
  return { ...command.body.metadata, ...(adjusted === undefined ? {} : { [ADJUSTED_OPTIONS_KEY]: adjusted }) };
}
