/**
 * Takes a run out of the thread: its row, its frames and its events, and with a rollback what it did to the state. Owns
 * what belongs to a run that is to be gone, not when it goes.
 *
 * Everything of it in the object goes in one transaction, which leaves a note in the outbox: the flush that carries the
 * note takes the run's rows out of D1. So a crash leaves the run whole, with the request to end it in its row, or gone.
 */
import { isTerminal } from "../domain/run/run-status.ts";
import { err, ok } from "../domain/shared/result.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { RpcResult } from "../protocol/errors.ts";
import { findRun } from "./find-run.ts";
import { forgetBase, restoreBase } from "./run-base.ts";
import type { ThreadContext } from "./thread-context.ts";
import { runGone } from "./thread-log.ts";

/** As if the run had never been. Call inside a transaction; nothing of the run may be at work any more. */
export function rollBackRun(context: ThreadContext, run: RunRecord): void {
  if (run.attempt > 0) restoreBase(context, run);
  removeRun(context, run);
}

/** The run goes, what it did to the state stays. Call inside a transaction. */
export function removeRun(context: ThreadContext, run: RunRecord): void {
  forgetBase(context, run);
  context.frames.expire(run.runId);
  for (const { taskId } of context.delegations.ofRun(run.runId)) context.delegations.delete(taskId);
  context.runs.delete(run.runId);
  context.outbox.append([runGone(run.runId)], { now: context.now(), threadChanged: true });
}

/** Because a client asked; D1's rows go with the flush, at once or once D1 answers again. */
export async function deleteRun(context: ThreadContext, runId: string): Promise<RpcResult<null>> {
  const found = findRun(context, runId);
  if (!found.ok) return found;
  if (!isTerminal(found.value.status)) {
    return err({ code: "thread_busy", message: `run '${runId}' is ${found.value.status}; cancel it first` });
  }
  context.storage.transactionSync(() => {
    removeRun(context, found.value);
  });
  await context.flush.flush();
  return ok(null);
}
