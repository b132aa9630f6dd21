/**
 * Runs of one thread, as its routes and recovery ask for them: a front over acceptance, scheduling, cancel and removal.
 * Owns nothing of its own; each part decides, commits, then acts.
 */
import { ok } from "../domain/shared/result.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { RpcResult } from "../protocol/errors.ts";
import type { ListRunsQuery } from "../protocol/runs.ts";
import type { CancelRunOptions, CancelRunsQuery, RunCommand } from "../protocol/thread-rpc.ts";
import { RunAcceptance, type RunOrigin } from "./run-acceptance.ts";
import { findRun } from "./find-run.ts";
import type { AlarmSource } from "./object-alarm.ts";
import { RunCancel } from "./run-cancel.ts";
import type { RunDriver } from "./run-driver.ts";
import { deleteRun } from "./run-rollback.ts";
import { RunScheduler } from "./run-scheduler.ts";
import type { StartHow } from "./run-start.ts";
import type { ThreadContext } from "./thread-context.ts";

export class RunService {
  readonly #context: ThreadContext;
  readonly #acceptance: RunAcceptance;
  readonly #scheduler: RunScheduler;
  readonly #cancel: RunCancel;

  constructor(context: ThreadContext, driver: RunDriver) {
    this.#context = context;
    this.#acceptance = new RunAcceptance(context);
    this.#scheduler = new RunScheduler(context, { driver, acceptance: this.#acceptance });
    this.#cancel = new RunCancel(context);
  }

  /** When a run that waits for its time has to start. */
  get due(): AlarmSource {
    return this.#scheduler;
  }

  /** Accepts a run, and starts it unless it has to wait. A run without an origin may what the role `user` may. */
  async create(command: RunCommand, origin?: RunOrigin): Promise<RpcResult<RunRecord>> {
    const taken = await this.#context.idempotent.take(command, () => this.#acceptance.accept(command, origin));
    if (!taken.ok) return taken;
    const { run, isRepeat } = taken.value;
    if (!isRepeat) this.#begin(run);
    return ok(run);
  }

  find(runId: string): RpcResult<RunRecord> {
    return findRun(this.#context, runId);
  }

  list(query: ListRunsQuery): RunRecord[] {
    const { limit, offset, status } = query;
    return this.#context.runs.list({ limit, offset, ...(status === undefined ? {} : { status }) });
  }

  cancel(runId: string, options: CancelRunOptions): Promise<RpcResult<null>> {
    return this.#cancel.cancel(runId, options);
  }

  cancelMany(query: CancelRunsQuery): Promise<RpcResult<null>> {
    return this.#cancel.cancelMany(query);
  }

  cancelTask(runId: string, taskId: string): RpcResult<null> {
    return this.#cancel.cancelTask(runId, taskId);
  }

  async delete(runId: string): Promise<RpcResult<null>> {
    await this.#cancel.closeWait(runId);
    return deleteRun(this.#context, runId);
  }

  /** After recovery, and whenever a run may have made place for another: what waits goes on. Never rejects. */
  async goOn(): Promise<void> {
    try {
      await this.#cancel.finishWait();
    } catch (fault) {
      this.#context.onFault(fault);
    }
    await this.#scheduler.startNext();
  }

  /** Starts driving a run whose row says running. */
  resume(run: RunRecord, start: StartHow): void {
    this.#scheduler.start(run, start);
  }

  #begin(run: RunRecord): void {
    if (run.status === "running") {
      this.#scheduler.start(run, "input");
      return;
    }
    // Runs that end for this one hear of it; where none is at work, its turn is now.
    this.#cancel.throwSwitches();
    void this.#scheduler.startNext();
  }
}
