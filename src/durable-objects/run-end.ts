/**
 * The rows of a run's end, for the driver and for recovery alike: the terminal status, its one event, the delivery it asked
 * for, and the marks of delegations that ended with it. Owns what belongs to an end, not when it comes nor the transaction.
 */
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import { forgetBase } from "./run-base.ts";
import type { ThreadContext } from "./thread-context.ts";
import { runEnded } from "./thread-log.ts";

/** Call inside a transaction: a status without its event, or the other way round, would contradict the log (P1). */
export function saveRunEnd(context: ThreadContext, ended: RunRecord): void {
  const usage = context.outbox.usageOf(ended.runId);
  context.runs.save({ ...ended, usage });
  context.outbox.append([runEnded({ ...ended, usage })], { now: ended.updatedAt });
  context.webhooks.begin(ended);
  // A run that waits for an answer goes on with its open calls and delegations; one that never started has none, and what
  // is open is another's.
  if (ended.interrupts !== null || ended.attempt === 0) return;
  for (const { taskId } of context.delegations.ofRun(ended.runId)) context.delegations.delete(taskId);
  context.toolStarts.clear();
  forgetBase(context, ended);
}
