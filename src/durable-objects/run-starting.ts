/**
 * The rows of a run's start, at acceptance and when a pending run's turn comes: its status, the head it starts from and
 * what hangs on it, its one `run.start` and the messages it brings (architecture section 5).
 */
import { newRecoveryRecord } from "../domain/run/recovery.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { RunEventDraft } from "../protocol/run-events.ts";
import { captureBase, forgetBase } from "./run-base.ts";
import type { ThreadContext } from "./thread-context.ts";
import { runStarted } from "./thread-log.ts";

export interface RunStartRows {
  readonly baseCheckpointId: string | null;
  readonly events: readonly RunEventDraft[];
}

/** Call inside a transaction. `run` is accepted: its row may be there already. */
export function markRunning(context: ThreadContext, run: RunRecord, start: RunStartRows): RunRecord {
  const { baseCheckpointId, events } = start;
  // What a run that waited could have gone back to is history once another one starts.
  const before = context.runs.newestStarted();
  if (before?.baseExtras !== undefined && before.interrupts !== null) {
    forgetBase(context, before);
    context.runs.save({ ...before, baseExtras: { ...before.baseExtras, isForgotten: true } });
  }
  const baseExtras = captureBase(context, run);
  const now = Math.max(context.now(), run.createdAt);
  const running = context.graphs.withAdjustments({
    ...run,
    status: "running",
    attempt: 1,
    baseCheckpointId,
    recovery: newRecoveryRecord(baseCheckpointId, { now, version: context.deps.version }),
    ...(baseExtras === undefined ? {} : { baseExtras }),
    updatedAt: now,
  });
  context.runs.save(running);
  context.outbox.append([runStarted(running), ...events], { now });
  return running;
}
