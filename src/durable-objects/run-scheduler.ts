/**
 * Starts runs of one thread: after acceptance, when their turn comes, and again after a crash. Owns which stored run
 * starts next and when (`domain/run/multitask` decides), and which start it gets; the driver owns the run from there on.
 *
 * - A pending run gets its base checkpoint and its events in the transaction that marks it running (architecture section
 *   5); what it carries is checked against the state it starts from, which is not the one it was accepted on.
 * - Starts go one after the other. One that fails is tried again by the alarm, which also owns the time of a delayed run.
 */
import { decideNext } from "../domain/run/multitask.ts";
import type { RunError, RunRecord } from "../platform/durable-storage/run-store.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import type { AlarmSource } from "./object-alarm.ts";
import { ACCEPT_TRIES_MAX, type PreparedRun, type RunAcceptance } from "./run-acceptance.ts";
import type { RunDriver } from "./run-driver.ts";
import { saveRunEnd } from "./run-end.ts";
import { type StartHow, toRunStart } from "./run-start.ts";
import { markRunning } from "./run-starting.ts";
import type { ThreadContext } from "./thread-context.ts";
import { runStarted } from "./thread-log.ts";

export class RunScheduler implements AlarmSource {
  readonly #context: ThreadContext;
  readonly #driver: RunDriver;
  readonly #acceptance: RunAcceptance;
  #last: Promise<void> = Promise.resolve();

  constructor(context: ThreadContext, parts: { readonly driver: RunDriver; readonly acceptance: RunAcceptance }) {
    this.#context = context;
    this.#driver = parts.driver;
    this.#acceptance = parts.acceptance;
  }

  /** Starts driving a run whose row says running. */
  start(run: RunRecord, start: StartHow): void {
    // A thread that is being deleted ends its runs itself, those that nobody drives too.
    if (this.#context.isClosing) return;
    // Not awaited: a run lives on after the request that started it. The driver never rejects.
    void this.#driver.drive(run, toRunStart(run, start));
    // A cancel that came between the commit of the row and now found no switch to throw.
    const { runs, live } = this.#context;
    if (runs.find(run.runId)?.cancelRequested === true) live.get(run.runId)?.abort.abort();
    this.#context.flush.kick();
  }

  /** Starts the run whose turn it is, if any. Never rejects. */
  startNext(): Promise<void> {
    this.#last = this.#last.then(() =>
      this.#startDue().catch((fault: unknown) => {
        this.#context.onFault(fault);
      }),
    );
    return this.#last;
  }

  nextDueAt(): number | undefined {
    // Its end starts the next one, and until then its keep-alive wakes the object.
    if (this.#context.live.size > 0) return undefined;
    const now = this.#context.now();
    const next = decideNext(this.#context.runs.activeRuns(), now);
    if (next.kind === "none") return undefined;
    return next.kind === "due" ? next.at : now + this.#context.deps.config.runtime.keep_alive_seconds * 1_000;
  }

  async #startDue(): Promise<void> {
    let tries = 0;
    while (tries < ACCEPT_TRIES_MAX && !this.#context.isClosing && this.#context.live.size === 0) {
      const next = decideNext(this.#context.runs.activeRuns(), this.#context.now());
      if (next.kind !== "start") return;
      const started = await this.#tryStart(next.runId);
      if (started === "running") return;
      // An end makes place for the next one; a state that moved is read again.
      tries = started === "ended" ? 0 : tries + 1;
    }
  }

  async #tryStart(runId: string): Promise<"running" | "ended" | "state_moved"> {
    await this.#context.edits.settled();
    const run = this.#context.runs.find(runId);
    if (run === undefined || run.status !== "pending") return "ended";
    const prepared = this.#context.deps.catalog.has(run.graphId)
      ? await this.#acceptance.prepare(run.command)
      : graphIsGone(run);
    if (!prepared.ok) {
      this.#refuse(run, prepared.error);
      return "ended";
    }
    if (await this.#acceptance.supersedeWaiting(run.command)) return "state_moved";
    const running = this.#context.storage.transactionSync(() => this.#markRunning(runId, prepared.value));
    if (typeof running === "string") return running;
    this.start(running, "input");
    return "running";
  }

  #markRunning(runId: string, { command, baseCheckpointId, events }: PreparedRun): RunRecord | "ended" | "state_moved" {
    // Asked again here: a cancel may have come while the state was read.
    const run = this.#context.runs.find(runId);
    if (run === undefined || run.status !== "pending") return "ended";
    if (this.#context.edits.active || this.#context.isClosing) return "state_moved";
    if (this.#context.headCheckpointId() !== baseCheckpointId) return "state_moved";
    // What a command answers was not known until now.
    const prepared = { ...run, command: { ...run.command, ...command } };
    return markRunning(this.#context, prepared, { baseCheckpointId, events: events(runId) });
  }

  /** The state moved on since the run was accepted, and what it carries no longer fits. */
  #refuse({ runId }: RunRecord, refusal: ApiRefusal): void {
    const error: RunError = { error: "RunNotStartedError", message: `the run could not start: ${refusal.message}` };
    this.#context.storage.transactionSync(() => {
      const run = this.#context.runs.find(runId);
      if (run === undefined || run.status !== "pending") return;
      const updatedAt = this.#context.now();
      const ended: RunRecord = { ...run, status: "error", attempt: 1, error, updatedAt };
      this.#context.frames.writeBlock(runId, [
        { id: 1, event: "metadata", data: JSON.stringify({ run_id: runId, attempt: 1 }) },
        { id: 2, event: "error", data: JSON.stringify(error) },
      ]);
      this.#context.outbox.append([runStarted(ended)], { now: updatedAt });
      const head = this.#context.headCheckpointId();
      saveRunEnd(this.#context, { ...ended, baseCheckpointId: head, finalCheckpointId: head });
    });
    this.#context.live.endedUndriven();
    this.#context.flush.kick();
  }
}

function graphIsGone({ graphId }: RunRecord): { readonly ok: false; readonly error: ApiRefusal } {
  return { ok: false, error: { code: "not_found", message: `no graph '${graphId}'` } };
}
