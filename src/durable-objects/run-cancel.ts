/**
 * Ends a run, or one delegation of it, because somebody asked. Settles first: the request to end is stored, then the
 * switch is thrown (R60). Owns the request; the end itself is the driver's, or recovery's when nobody drives the run.
 */
import { isTerminal } from "../domain/run/run-status.ts";
import { err, ok } from "../domain/shared/result.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { RpcResult } from "../protocol/errors.ts";
import type { ThreadContext } from "./thread-context.ts";

export class RunCancel {
  readonly #context: ThreadContext;

  constructor(context: ThreadContext) {
    this.#context = context;
  }

  /** `wait` returns after the end. */
  async cancel(runId: string, options: { wait: boolean }): Promise<RpcResult<null>> {
    const found = findRun(this.#context, runId);
    if (!found.ok) return found;
    const run = found.value;
    if (run.status === "interrupted") return ok(null);
    if (isTerminal(run.status)) {
      return err({
        code: "not_cancellable",
        message: `run '${runId}' is ${run.status}; only an active run is cancelled`,
      });
    }
    if (!run.cancelRequested) this.#context.runs.save({ ...run, cancelRequested: true });
    const live = this.#context.live.get(runId);
    live?.abort.abort();
    if (options.wait) await live?.done;
    return ok(null);
  }

  /** Ends one delegation of a run; the run goes on with its result, which says so. */
  cancelTask(runId: string, taskId: string): RpcResult<null> {
    const found = findRun(this.#context, runId);
    if (!found.ok) return found;
    if (this.#context.journal.requestCancel(runId, taskId)) return ok(null);
    return err({ code: "not_found", message: `run '${runId}' has no delegation '${taskId}' in flight` });
  }
}

export function findRun(context: ThreadContext, runId: string): RpcResult<RunRecord> {
  const run = context.runs.find(runId);
  return run === undefined ? err({ code: "not_found", message: `no run '${runId}' on this thread` }) : ok(run);
}
