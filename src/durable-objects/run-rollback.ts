/**
 * Takes a run out of the thread: its row, its frames and its events. Owns what belongs to a run that is to be gone.
 */
import { isTerminal } from "../domain/run/run-status.ts";
import { err, ok } from "../domain/shared/result.ts";
import type { RpcResult } from "../protocol/errors.ts";
import { findRun } from "./run-cancel.ts";
import type { ThreadContext } from "./thread-context.ts";

export class RunRollback {
  readonly #context: ThreadContext;

  constructor(context: ThreadContext) {
    this.#context = context;
  }

  async delete(runId: string): Promise<RpcResult<null>> {
    const found = findRun(this.#context, runId);
    if (!found.ok) return found;
    if (!isTerminal(found.value.status)) {
      return err({ code: "thread_busy", message: `run '${runId}' is ${found.value.status}; cancel it first` });
    }
    await this.#context.flush.flush();
    const thread = this.#context.thread();
    await this.#context.flush.forgetRun({ owner: thread.owner, thread_id: thread.threadId }, runId);
    this.#context.storage.transactionSync(() => {
      this.#context.frames.expire(runId);
      for (const { taskId } of this.#context.delegations.ofRun(runId)) this.#context.delegations.delete(taskId);
      this.#context.runs.delete(runId);
    });
    return ok(null);
  }
}
