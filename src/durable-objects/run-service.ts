/**
 * Runs of one thread, as its routes and recovery ask for them: a front over acceptance, scheduling, cancel and removal.
 * Owns nothing of its own; each part decides, commits, then acts.
 */
import { ok } from "../domain/shared/result.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { RpcResult } from "../protocol/errors.ts";
import type { ListRunsQuery } from "../protocol/runs.ts";
import type { RunCommand } from "../protocol/thread-rpc.ts";
import { RunAcceptance, type RunOrigin } from "./run-acceptance.ts";
import { findRun, RunCancel } from "./run-cancel.ts";
import type { RunDriver } from "./run-driver.ts";
import { RunRollback } from "./run-rollback.ts";
import { RunScheduler } from "./run-scheduler.ts";
import type { ThreadContext } from "./thread-context.ts";

export class RunService {
  readonly #context: ThreadContext;
  readonly #acceptance: RunAcceptance;
  readonly #scheduler: RunScheduler;
  readonly #cancel: RunCancel;
  readonly #rollback: RunRollback;

  constructor(context: ThreadContext, driver: RunDriver) {
    this.#context = context;
    this.#acceptance = new RunAcceptance(context);
    this.#scheduler = new RunScheduler(context, driver);
    this.#cancel = new RunCancel(context);
    this.#rollback = new RunRollback(context);
  }

  /** Accepts and starts a run. A run without an origin may what the role `user` may. */
  async create(command: RunCommand, origin?: RunOrigin): Promise<RpcResult<RunRecord>> {
    const taken = await this.#context.idempotent.take(command, () => this.#acceptance.accept(command, origin));
    if (!taken.ok) return taken;
    const { run, isRepeat } = taken.value;
    if (!isRepeat) this.#scheduler.start(run, "input");
    return ok(run);
  }

  find(runId: string): RpcResult<RunRecord> {
    return findRun(this.#context, runId);
  }

  list(query: ListRunsQuery): RunRecord[] {
    const { limit, offset, status } = query;
    return this.#context.runs.list({ limit, offset, ...(status === undefined ? {} : { status }) });
  }

  cancel(runId: string, options: { wait: boolean }): Promise<RpcResult<null>> {
    return this.#cancel.cancel(runId, options);
  }

  cancelTask(runId: string, taskId: string): RpcResult<null> {
    return this.#cancel.cancelTask(runId, taskId);
  }

  delete(runId: string): Promise<RpcResult<null>> {
    return this.#rollback.delete(runId);
  }

  /** Starts driving a run whose row says running. */
  resume(run: RunRecord, start: "input" | "resume"): void {
    this.#scheduler.start(run, start);
  }
}
