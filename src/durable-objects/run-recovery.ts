/**
 * Finds runs that storage calls running and nobody drives, and does what `domain/run/recovery` decides. Called on every
 * wake, alarm wakes included, so that a run ends even when no client ever asks again (P1).
 * Recoveries go one after the other: two at once would each write an end.
 */
import { decideRecovery } from "../domain/run/recovery.ts";
import { unreachable } from "../domain/shared/assert.ts";
import { pendingCalls } from "../agent/graph/pending-calls.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import { cancelUnanswered } from "./cancel-unanswered.ts";
import { saveRunEnd } from "./run-end.ts";
import { withStopReason } from "./run-stop-reason.ts";
import type { RunService } from "./run-service.ts";
import type { ThreadContext } from "./thread-context.ts";
import { runRecovered } from "./thread-log.ts";

export class RunRecovery {
  readonly #context: ThreadContext;
  readonly #runs: RunService;
  #last: Promise<void> = Promise.resolve();

  constructor(context: ThreadContext, runs: RunService) {
    this.#context = context;
    this.#runs = runs;
  }

  /** Never rejects: a run that cannot be recovered now is tried again by the next alarm. */
  recover(): Promise<void> {
    this.#last = this.#last.then(() => this.#recoverAll());
    return this.#last;
  }

  async #recoverAll(): Promise<void> {
    for (const run of this.#context.runs.active()) {
      if (this.#context.live.get(run.runId) !== undefined) continue;
      try {
        await this.#recoverRun(run);
      } catch (fault) {
        // The object stays usable; the next alarm tries again.
        this.#context.onFault(fault);
      }
    }
  }

  async #recoverRun(run: RunRecord): Promise<void> {
    const { recovery_attempts, recovery_no_progress_seconds } = this.#context.deps.config.runtime;
    const decision = decideRecovery({
      run: {
        cancelRequested: run.cancelRequested,
        hasInput: run.command.body.input !== null && run.command.body.input !== undefined,
        baseCheckpointId: run.baseCheckpointId,
        recovery: run.recovery,
      },
      headCheckpointId: this.#context.headCheckpointId(),
      newestCheckpointId: this.#newestCheckpointId(run),
      budget: { attemptsMax: recovery_attempts, noProgressMs: recovery_no_progress_seconds * 1_000 },
      now: this.#context.now(),
    });
    switch (decision.kind) {
      case "start_with_input":
        this.#resume({ ...run, recovery: decision.recovery }, "input");
        return;
      case "resume":
        await this.#reopenCalls(run);
        // A cancel may have been stored while the state was read; a start from the row read before would undo it.
        if (this.#context.runs.find(run.runId)?.cancelRequested === true)
          return this.#recoverRun({ ...run, cancelRequested: true });
        this.#resume({ ...run, recovery: decision.recovery }, "resume");
        return;
      case "finish_cancel":
        await this.#end(run, { status: "interrupted" });
        return;
      case "give_up":
        await this.#end(run, { status: "error", error: { error: "RecoveryError", message: decision.message } });
        return;
      default:
        unreachable(decision);
    }
  }

  #newestCheckpointId({ runId }: RunRecord): string | null {
    const { saver, threadId, delegations } = this.#context;
    const namespaces = ["", ...delegations.ofRun(runId).map(({ checkpointNs }) => checkpointNs)];
    // Ids sort by the time they were made.
    return (
      namespaces
        .flatMap((namespace) => saver.headId(threadId, namespace) ?? [])
        .toSorted()
        .at(-1) ?? null
    );
  }

  #resume(run: RunRecord, start: "input" | "resume"): void {
    // A request that came meanwhile may have started it.
    if (this.#context.live.get(run.runId) !== undefined) return;
    // A deploy may have taken a model or lowered a limit: the run says what it goes on with.
    const again: RunRecord = this.#context.graphs.withAdjustments({
      ...run,
      attempt: run.attempt + 1,
      updatedAt: this.#context.now(),
    });
    this.#context.storage.transactionSync(() => {
      this.#context.runs.save(again);
      this.#context.outbox.append([runRecovered(again)], { now: again.updatedAt });
    });
    this.#runs.resume(again, start);
  }

  /** Calls that were open when the object died start as attempt 2: the lead's, and those of its children. */
  async #reopenCalls(run: RunRecord): Promise<void> {
    if (run.graphId !== LEAD_GRAPH_ID) return;
    const children = this.#context.delegations.ofRun(run.runId).map(({ checkpointNs }) => checkpointNs);
    for (const namespace of ["", ...children]) {
      const { messages } = await this.#context.graphs.stateUnder(namespace);
      this.#context.attempts.reopen(pendingCalls(messages ?? []).map((call) => call.id));
    }
  }

  async #end(run: RunRecord, end: { status: "interrupted" | "error"; error?: RunRecord["error"] }): Promise<void> {
    const notes = await this.#settleCalls(run);
    const ended: RunRecord = {
      ...run,
      ...notes,
      status: end.status,
      error: end.error ?? null,
      finalCheckpointId: this.#context.headCheckpointId(),
      updatedAt: this.#context.now(),
    };
    this.#context.storage.transactionSync(() => {
      saveRunEnd(this.#context, ended);
    });
    this.#context.live.endedUndriven();
    this.#context.flush.kick();
  }

  /** A state that cannot be read or written must not keep its run from ending (P1); requests repair open calls anyway. */
  async #settleCalls(run: RunRecord): Promise<Pick<RunRecord, "notes">> {
    if (run.graphId !== LEAD_GRAPH_ID) return {};
    try {
      const built = await this.#context.graphs.forState();
      await this.#context.live.settle(run.runId, () => cancelUnanswered(this.#context, run, built));
      return await withStopReason(run, built);
    } catch (fault) {
      this.#context.onFault(fault);
      return {};
    }
  }
}
