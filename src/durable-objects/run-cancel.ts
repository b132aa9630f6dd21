/**
 * Ends a run, or one delegation of it, because somebody asked. Settles first: the request to end is stored, then the
 * switch is thrown (R60). Owns the request and which one wins; the end of a run that is at work is its driver's, or
 * recovery's when nobody drives it. A run that waits, for its turn or for an answer, ends here.
 *
 * - The stored request wins over however the graph ended, with or without a crash between.
 * - Of two requests the first is kept, unless the second takes back what the run did.
 */
import { END } from "@langchain/langgraph";
import type { BuiltGraph } from "../agent/graph-catalog.ts";
import { type CancelAction, isStronger } from "../domain/run/multitask.ts";
import { isTerminal } from "../domain/run/run-status.ts";
import { err, ok } from "../domain/shared/result.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { ApiRefusal, RpcResult } from "../protocol/errors.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { CancelRunOptions, CancelRunsQuery } from "../protocol/thread-rpc.ts";
import { cancelUnanswered } from "./cancel-unanswered.ts";
import { findRun } from "./find-run.ts";
import { forgetBase } from "./run-base.ts";
import { saveRunEnd } from "./run-end.ts";
import { removeRun, rollBackRun } from "./run-rollback.ts";
import type { ThreadContext } from "./thread-context.ts";
import { runCancelled } from "./thread-log.ts";

/** What is stored of a request to end a run. */
interface CancelRequest {
  readonly action: CancelAction;
  readonly reason?: string | undefined;
}

export class RunCancel {
  readonly #context: ThreadContext;

  constructor(context: ThreadContext) {
    this.#context = context;
  }

  /** `wait` returns after the end. */
  async cancel(runId: string, { wait, action = "interrupt", reason }: CancelRunOptions): Promise<RpcResult<null>> {
    const found = findRun(this.#context, runId);
    if (!found.ok) return found;
    const run = found.value;
    const request: CancelRequest = { action, reason };
    if (!isTerminal(run.status)) {
      this.#context.storage.transactionSync(() => {
        requestEnd(this.#context, runId, request);
      });
      this.throwSwitches();
      if (wait) await this.#context.live.get(runId)?.done;
      return ok(null);
    }
    if (this.#isWaiting(run)) return this.#endWait(run, request);
    if (run.status === "interrupted" && request.action === "interrupt") return ok(null);
    return err(notCancellable(run, request.action));
  }

  /** Every run that is named, or every active one of the status. Nothing is cancelled when one of the names is unknown. */
  async cancelMany({ run_ids, status, ...request }: CancelRunsQuery): Promise<RpcResult<null>> {
    const ids = run_ids ?? this.#activeIds(status);
    for (const runId of ids) {
      const found = findRun(this.#context, runId);
      if (!found.ok) return found;
    }
    for (const runId of ids) {
      const cancelled = await this.cancel(runId, { ...request, wait: false });
      // One that has ended meanwhile, or before, is as its client wanted it: not at work.
      if (!cancelled.ok && cancelled.error.code !== "not_cancellable") return cancelled;
    }
    return ok(null);
  }

  /** Ends one delegation of a run; the run goes on with its result, which says so. */
  cancelTask(runId: string, taskId: string): RpcResult<null> {
    const found = findRun(this.#context, runId);
    if (!found.ok) return found;
    if (this.#context.journal.requestCancel(runId, taskId)) return ok(null);
    return err({ code: "not_found", message: `run '${runId}' has no delegation '${taskId}' in flight` });
  }

  /** What runs and is to end hears of it. */
  throwSwitches(): void {
    const { runs, live } = this.#context;
    for (const { runId, cancelAction } of runs.activeRuns()) {
      if (cancelAction !== undefined) live.get(runId)?.abort.abort();
    }
    // Who waits for one that ended without having run finds its end.
    live.endedUndriven();
    this.#context.flush.kick();
  }

  /** Before a run is removed: nobody else could close the step it waits in, nor keep what has finished in it. */
  async closeWait(runId: string): Promise<void> {
    const run = this.#context.runs.find(runId);
    if (run !== undefined && this.#isWaiting(run)) await this.#endWait(run, { action: "interrupt" });
  }

  /** A wait whose end was asked for, and whose object died before it was done. */
  async finishWait(): Promise<void> {
    const waiting = this.#context.runs.newestStarted();
    if (waiting !== undefined && waiting.cancelRequested && this.#isWaiting(waiting)) await this.#finishWait(waiting);
  }

  #activeIds(status: CancelRunsQuery["status"]): string[] {
    const active = this.#context.runs.activeRuns();
    return active.filter((run) => status === "all" || run.status === status).map(({ runId }) => runId);
  }

  /** It ended asking, and nothing has started since that could have answered. */
  #isWaiting(run: RunRecord): boolean {
    if (run.status !== "interrupted" || run.interrupts === null) return false;
    return this.#context.runs.newestStarted()?.runId === run.runId;
  }

  async #endWait(run: RunRecord, request: CancelRequest): Promise<RpcResult<null>> {
    const isLater = this.#context.headCheckpointId() !== run.finalCheckpointId || run.baseExtras?.isForgotten === true;
    if (request.action === "rollback" && isLater) {
      const message = `the thread went on since run '${run.runId}' began to wait; it cannot be rolled back`;
      return err({ code: "not_cancellable", message });
    }
    if (isStronger(request.action, run.cancel?.action)) this.#context.runs.save(withRequest(run, request));
    await this.#finishWait(run);
    return ok(null);
  }

  async #finishWait({ runId }: RunRecord): Promise<void> {
    const { edits, runs, storage, live } = this.#context;
    await edits.run(async () => {
      const run = runs.find(runId);
      if (run === undefined || !this.#isWaiting(run)) return;
      if (run.cancel?.action === "rollback") {
        storage.transactionSync(() => {
          rollBackRun(this.#context, run);
        });
        return;
      }
      const built = await this.#context.graphs.forState();
      await live.settle(runId, () => closeStep(this.#context, run, built));
      storage.transactionSync(() => {
        this.#saveEndedWait(run);
      });
    });
    live.endedUndriven();
    this.#context.flush.kick();
  }

  #saveEndedWait(run: RunRecord): void {
    const { runs, delegations, toolStarts, outbox } = this.#context;
    const now = this.#context.now();
    runs.save({ ...run, interrupts: null, finalCheckpointId: this.#context.headCheckpointId(), updatedAt: now });
    for (const { taskId } of delegations.ofRun(run.runId)) delegations.delete(taskId);
    toolStarts.clear();
    forgetBase(this.#context, run);
    outbox.append([runCancelled(run)], { now });
  }
}

/**
 * Stores the request in the row of an active run; one that has not started has nothing to wind up and ends with it. Call
 * inside a transaction, and throw the switches after it.
 */
export function requestEnd(context: ThreadContext, runId: string, request: CancelRequest): void {
  const run = context.runs.find(runId);
  if (run === undefined || isTerminal(run.status)) return;
  const asked = isStronger(request.action, storedAction(run)) ? withRequest(run, request) : run;
  if (run.status !== "pending") {
    if (asked !== run) context.runs.save(asked);
    return;
  }
  if (request.action === "rollback") removeRun(context, run);
  else saveRunEnd(context, { ...asked, status: "interrupted", updatedAt: context.now() });
}

function storedAction({ cancelRequested, cancel }: RunRecord): CancelAction | undefined {
  return cancel?.action ?? (cancelRequested ? "interrupt" : undefined);
}

function withRequest(run: RunRecord, { action, reason }: CancelRequest): RunRecord {
  const said = reason ?? run.cancel?.reason;
  return { ...run, cancelRequested: true, cancel: { v: 1, action, ...(said === undefined ? {} : { reason: said }) } };
}

/** Nothing goes on from the step that waits. */
async function closeStep(context: ThreadContext, run: RunRecord, built: BuiltGraph): Promise<void> {
  if (run.graphId === LEAD_GRAPH_ID) await cancelUnanswered(context, run, built);
  else await built.graph.updateState({ configurable: { ...built.configurable, run_id: run.runId } }, null, END);
}

function notCancellable(run: RunRecord, action: CancelAction): ApiRefusal {
  const what = action === "rollback" ? "rolled back" : "cancelled";
  const message = `run '${run.runId}' is ${run.status}; only a run that is active or waits for an answer is ${what}`;
  return { code: "not_cancellable", message };
}
