/**
 * Finds runs that storage calls running and nobody drives, and does what `domain/run/recovery` decides. Called on every
 * wake, alarm wakes included, so that a run ends even when no client ever asks again (P1).
 * Recoveries go one after the other: two at once would each write an end.
 */
import { decideRecovery, noteOutOfMemory, noteWaiting, type RecoveryDecision } from "../domain/run/recovery.ts";
import { classifyPlatformError } from "../domain/run/recovery-errors.ts";
import { unreachable } from "../domain/shared/assert.ts";
import { pendingCalls } from "../agent/graph/pending-calls.ts";
import { toWire } from "../agent/wire/to-wire.ts";
import { findHeads, newestOf } from "../platform/durable-storage/checkpoint-order.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import { cancelUnanswered } from "./cancel-unanswered.ts";
import { openLiveRun } from "./open-live-run.ts";
import { openTaskEnds } from "./open-task-ends.ts";
import { saveRunEnd } from "./run-end.ts";
import { rollBackRun } from "./run-rollback.ts";
import { answersOf, type StartHow, startKindOf } from "./run-start.ts";
import { standsAtBreakpoint } from "./run-start-breakpoints.ts";
import { readPendingInterrupts, waitingInterrupts } from "./run-start-interrupts.ts";
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
      if (run.status === "pending") continue;
      try {
        if (this.#context.live.get(run.runId) === undefined) await this.#recoverRun(run);
        else this.#noteWaiting(run);
      } catch (fault) {
        // The object stays usable; the next alarm tries again.
        this.#context.onFault(fault);
        this.#noteFailure(run, fault);
      }
    }
  }

  /** A recovery that failed costs an attempt as well: a state that nobody can read must not be tried for ever (P8). */
  #noteFailure({ runId }: RunRecord, fault: unknown): void {
    const kind = classifyPlatformError(fault);
    const run = this.#context.runs.find(runId);
    if (kind === "superseded" || run?.status !== "running" || this.#context.live.get(runId) !== undefined) return;
    const { attempts } = run.recovery;
    const failed = { ...run.recovery, attempts: attempts + 1, headCheckpointId: this.#newestCheckpointId() };
    const recovery = kind === "out_of_memory" ? noteOutOfMemory(failed) : failed;
    this.#context.runs.save({ ...run, recovery });
  }

  /** At the alarm's outermost frame, where memory is free again: the run that was driven is the one that took it. */
  noteOutOfMemory(): void {
    const [run] = this.#context.runs.active();
    if (run?.status !== "running") return;
    this.#context.runs.save({ ...run, recovery: noteOutOfMemory(run.recovery) });
  }

  /** Looked at with every alarm of a live run: should it die now, it died waiting for a slot (P4). */
  #noteWaiting(run: RunRecord): void {
    if (this.#context.admission.snapshot().queued === 0) return;
    const recovery = noteWaiting(run.recovery);
    if (recovery !== run.recovery) this.#context.runs.save({ ...run, recovery });
  }

  async #recoverRun(run: RunRecord): Promise<void> {
    const decision = await this.#decide(run);
    switch (decision.kind) {
      case "start_with_input":
        this.#resume({ ...run, recovery: decision.recovery }, "input");
        return;
      case "start_with_command":
      case "resume":
        await this.#reopenCalls(run);
        // A cancel may have been stored while the state was read; a start from the row read before would undo it.
        if (this.#context.runs.find(run.runId)?.cancelRequested === true)
          return this.#recoverRun({ ...run, cancelRequested: true });
        this.#resume({ ...run, recovery: decision.recovery }, this.#howOf(run, decision));
        return;
      case "wait":
        await this.#endWaiting(run);
        return;
      case "finish_cancel":
        if (this.#rolledBack(run)) return;
        await this.#end(run, { status: "interrupted" });
        return;
      case "give_up":
        await this.#end(run, { status: "error", error: { error: "RecoveryError", message: decision.message } });
        return;
      default:
        unreachable(decision);
    }
  }

  async #decide(run: RunRecord): Promise<RecoveryDecision> {
    const { recovery_attempts, recovery_no_progress_seconds, recovery_out_of_memory } =
      this.#context.deps.config.runtime;
    const answers = answersOf(run.command.body);
    const headCheckpointId = this.#context.headCheckpointId();
    const isAtBase = headCheckpointId === run.baseCheckpointId;
    const pending =
      isAtBase && answers.length > 0 ? await readPendingInterrupts(this.#context) : { ids: [], isStale: false };
    return decideRecovery({
      run: {
        cancelRequested: run.cancelRequested,
        start: startKindOf(run.command.body),
        answers,
        baseCheckpointId: run.baseCheckpointId,
        recovery: run.recovery,
      },
      headCheckpointId,
      newestCheckpointId: this.#newestCheckpointId(),
      pending: pending.ids,
      headIsStale: pending.isStale,
      atBreakpoint: !isAtBase && (await standsAtBreakpoint(this.#context, run)),
      budget: {
        attemptsMax: recovery_attempts,
        noProgressMs: recovery_no_progress_seconds * 1_000,
        outOfMemoryMax: recovery_out_of_memory,
      },
      now: this.#context.now(),
      version: this.#context.deps.version,
    });
  }

  /** The rollback was accepted before the crash, or while this end was prepared. */
  #rolledBack({ runId }: RunRecord): boolean {
    const run = this.#context.runs.find(runId);
    if (run?.cancel?.action !== "rollback") return false;
    this.#context.storage.transactionSync(() => {
      rollBackRun(this.#context, run);
    });
    this.#context.live.endedUndriven();
    this.#context.flush.kick();
    return true;
  }

  /** A run that brought nothing and committed nothing starts as it was accepted: from an older checkpoint, too. */
  #howOf({ command, baseCheckpointId }: RunRecord, decision: RecoveryDecision): StartHow {
    if (decision.kind === "start_with_command") return { answers: decision.answers };
    const isUntouched = this.#context.headCheckpointId() === baseCheckpointId;
    return isUntouched && startKindOf(command.body) === "nothing" ? "input" : "resume";
  }

  /** Of whatever namespace, and whatever the clock said: a child's step is progress, a nested graph's too. */
  #newestCheckpointId(): string | null {
    const { meter, threadId } = this.#context;
    return newestOf(findHeads(meter.labelled("checkpoints"), threadId))?.checkpointId ?? null;
  }

  #resume(run: RunRecord, start: StartHow): void {
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

  /** The graph asks again, or stands at a breakpoint: nothing of the run is left to do. */
  async #endWaiting(run: RunRecord): Promise<void> {
    const { graph, configurable } = await this.#context.graphs.forRun(run);
    const state = await graph.getState({ configurable: { ...configurable } });
    const interrupts = (await waitingInterrupts(this.#context, state)).map((each) => toWire(each));
    await this.#context.failpoint?.("terminal_commit", "waiting");
    if (this.#rolledBack(run)) return;
    if (this.#isCancelled(run)) return this.#end(run, { status: "interrupted" });
    const values = JSON.stringify({ __interrupt__: interrupts });
    const frames: LastFrame[] = run.command.body.stream_mode
      .filter((mode) => mode === "values" || mode === "updates")
      .map((mode) => [mode, values]);
    this.#commitEnd(run, { status: "interrupted", error: null, interrupts }, frames);
  }

  async #end(run: RunRecord, end: { status: "interrupted" | "error"; error?: RunRecord["error"] }): Promise<void> {
    const openTasks = openTaskEnds(this.#context, run);
    const notes = await this.#settleCalls(run);
    await this.#context.failpoint?.("terminal_commit", "recovery");
    if (this.#rolledBack(run)) return;
    const { status, error = null } = this.#isCancelled(run) ? { status: "interrupted" as const } : end;
    const frames: LastFrame[] = openTasks.map((told) => ["custom", told]);
    if (error !== null) frames.push(["error", JSON.stringify(error)]);
    this.#commitEnd(run, { ...notes, status, error }, frames);
  }

  /** A request to end the run that was stored wins over the end that was prepared, as in the driver. */
  #isCancelled({ runId }: RunRecord): boolean {
    return this.#context.runs.find(runId)?.cancelRequested === true;
  }

  /** The terminal status, its event and the last frames commit in one transaction, as the driver's do (P1). */
  #commitEnd(run: RunRecord, end: Partial<RunRecord>, lastFrames: readonly LastFrame[]): void {
    const stored = this.#context.runs.find(run.runId) ?? run;
    // Another attempt's numbering: the one that died may have handed out any id below its reservation.
    const live =
      lastFrames.length === 0 ? undefined : openLiveRun(this.#context, { ...stored, attempt: stored.attempt + 1 });
    live?.frames.append("metadata", JSON.stringify({ run_id: run.runId, attempt: stored.attempt }));
    for (const [event, data] of lastFrames) live?.frames.append(event, data);
    try {
      this.#context.storage.transactionSync(() => {
        live?.frames.flush();
        const reserved = live?.frames.reserved ?? stored.framesReserved;
        const finalCheckpointId = this.#context.headCheckpointId();
        const updatedAt = this.#context.now();
        saveRunEnd(this.#context, { ...stored, ...end, finalCheckpointId, framesReserved: reserved, updatedAt });
      });
    } finally {
      this.#context.live.remove(run.runId);
    }
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

/** A frame's event and its data. */
type LastFrame = readonly [event: string, data: string];
