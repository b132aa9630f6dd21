/**
 * One wake's collaborators, wired: what the object's handlers call. Owns the order of things on a wake and at an alarm:
 * recover runs, expire frames, flush events, pump batches, arm the alarm again.
 */
import { classifyPlatformError } from "../domain/run/recovery-errors.ts";
import { err, ok } from "../domain/shared/result.ts";
import type { RpcResult } from "../protocol/errors.ts";
import { FrameExpiry } from "./frame-expiry.ts";
import { ObjectAlarm, type AlarmSource } from "./object-alarm.ts";
import { RunDriver } from "./run-driver.ts";
import { RunRecovery } from "./run-recovery.ts";
import { RunService } from "./run-service.ts";
import { RunStreams } from "./run-streams.ts";
import { StateService } from "./state-service.ts";
import { ThreadContext, type ThreadObjectDeps } from "./thread-context.ts";
import { CheckpointPruning } from "./checkpoint-pruning.ts";
import { ThreadBatches } from "./thread-batches.ts";
import { ThreadCopies } from "./thread-copies.ts";
import { ThreadDeletion } from "./thread-deletion.ts";
import { ThreadExpiry } from "./thread-expiry.ts";
import { ThreadService } from "./thread-service.ts";

/** A flush that D1 answers is over by then; one that hangs is looked after by the next alarm. */
const FLUSH_WAIT_MS = 1_000;

export class ThreadRuntime {
  readonly context: ThreadContext;
  readonly threads: ThreadService;
  readonly state: StateService;
  readonly runs: RunService;
  readonly streams: RunStreams;
  readonly batches: ThreadBatches;
  readonly recovery: RunRecovery;
  readonly copies: ThreadCopies;
  readonly deletion: ThreadDeletion;
  readonly #ttl: ThreadExpiry;
  readonly #expiry: FrameExpiry;
  readonly #pruning: CheckpointPruning;
  #isFlushSlow = false;
  readonly #alarm: ObjectAlarm;
  readonly #copyAlarm: ObjectAlarm;

  constructor(storage: DurableObjectStorage, deps: ThreadObjectDeps) {
    this.context = new ThreadContext(storage, deps, {
      onStep: () => {
        driver.onStep();
      },
      afterRun: () => {
        this.#afterRun().catch((fault: unknown) => {
          this.context.onFault(fault);
        });
      },
      onRetryDue: () => {
        this.arm().catch((fault: unknown) => {
          this.context.onFault(fault);
        });
      },
      onBatchTurn: (grant) => {
        this.batches.onTurn(grant);
      },
      batches: (role) => this.batches.service(role),
    });
    const driver = new RunDriver(this.context);
    this.state = new StateService(this.context);
    this.runs = new RunService(this.context, driver);
    this.streams = new RunStreams(this.context, this.runs);
    this.batches = new ThreadBatches(this.context, () => this.arm());
    this.recovery = new RunRecovery(this.context, this.runs);
    this.copies = new ThreadCopies(this.context);
    this.threads = new ThreadService(this.context, this.state, { copies: this.copies, arm: () => this.armCopy() });
    this.#ttl = new ThreadExpiry(this.context);
    this.#copyAlarm = new ObjectAlarm(storage, [this.copies]);
    this.deletion = new ThreadDeletion({
      context: this.context,
      cancelBatches: () => this.batches.cancelAll(),
      arm: () => this.arm(),
    });
    this.#pruning = new CheckpointPruning(this.context);
    const { frames_ttl_seconds } = deps.config.runtime;
    this.#expiry = new FrameExpiry(this.context.frames, this.context.runs, frames_ttl_seconds * 1_000);
    this.#alarm = new ObjectAlarm(
      storage,
      [
        this.#keepAlive(),
        this.runs.due,
        this.context.flush,
        this.#expiry,
        this.batches,
        this.context.webhooks,
        this.deletion,
        this.#ttl,
      ],
      () => {
        this.context.meter.bill("alarm", 1);
      },
    );
  }

  /** Called on every wake before anything else is served: a run that died with the last wake goes on. */
  async wake(): Promise<void> {
    if (this.deletion.isStored()) return this.deletion.finish();
    if (!this.threads.exists()) return;
    await this.recover();
    if (this.context.outbox.pending() !== undefined) this.context.flush.kick();
    this.context.webhooks.kick();
    await this.arm();
  }

  /** At an alarm: the thread's life is over, and its object has to delete it. */
  isOver(): boolean {
    if (!this.#ttl.isOver()) return false;
    // A deletion that dies needs an alarm of its own.
    this.#alarm.fired();
    return true;
  }

  /** The platform tries a failed alarm again by itself; one that ran out of memory is counted first, or it never ends. */
  async onAlarm(): Promise<void> {
    try {
      await this.#look();
    } catch (fault) {
      if (classifyPlatformError(fault) === "out_of_memory") this.recovery.noteOutOfMemory();
      throw fault;
    }
  }

  async #look(): Promise<void> {
    this.#alarm.fired();
    if (this.deletion.isDone) return;
    if (this.deletion.isStored()) return this.deletion.finish();
    const now = this.context.now();
    // A run whose end could not be committed has no driver any more: it is found here, within one keep-alive.
    await this.recover();
    this.#expiry.expire(now);
    await this.batches.onAlarm(now);
    if (this.context.flush.isDue(now)) this.context.flush.kick();
    this.context.webhooks.kick();
    this.#isFlushSlow = !(await this.context.flush.endsWithin(FLUSH_WAIT_MS));
    await this.arm();
  }

  /** At an alarm without a thread, which is of a copy into this object: true when nobody ended it and all of it is gone. */
  async endAbandonedCopy(): Promise<boolean> {
    if (this.threads.exists()) return false;
    this.#copyAlarm.fired();
    if (this.copies.isAbandoned(this.context.now())) {
      await this.context.storage.deleteAll();
      this.context.memory.forget();
      return true;
    }
    await this.armCopy();
    return false;
  }

  /** While there is no thread nothing else can be due. */
  armCopy(): Promise<void> {
    return this.#copyAlarm.arm();
  }

  /** What nobody drives any more goes on or ends; then what waits for its turn. */
  async recover(): Promise<void> {
    await this.recovery.recover();
    await this.runs.goOn();
  }

  /** Old checkpoints go, the newest state stays. No run may be accepted while it is made whole. */
  pruneToHead(): Promise<RpcResult<null>> {
    return this.context.edits.run(async () => {
      if (this.context.runs.active().length > 0) {
        return err({ code: "thread_busy", message: "thread has an active run; its checkpoints are in use" });
      }
      const pruned = await this.#pruning.pruneToHead();
      return pruned ? ok(null) : err({ code: "internal_error", message: "the checkpoints could not be pruned whole" });
    });
  }

  async arm(): Promise<void> {
    if (this.deletion.isDone) return;
    await this.#alarm.arm();
  }

  async #afterRun(): Promise<void> {
    await this.runs.goOn();
    try {
      await this.context.flush.flush();
      if (this.context.isClosing) return;
      await this.#pruning.prune();
    } catch (fault) {
      this.context.onFault(fault);
    }
    await this.arm().catch((fault: unknown) => this.context.onFault(fault));
  }

  /**
   * A detached run must not let the object fall asleep under it. Nor may the object die for good with a run's end on its way to
   * D1 when the run's own alarm has fired meanwhile: the row there would say `running` until somebody woke the thread.
   */
  #keepAlive(): AlarmSource {
    const { keep_alive_seconds } = this.context.deps.config.runtime;
    const { live, flush, runs } = this.context;
    const isLate = () => this.#isFlushSlow && flush.isUnderWay;
    const isActive = () => live.size > 0 || isLate() || runs.activeRuns()[0]?.status === "running";
    return { nextDueAt: () => (isActive() ? this.context.now() + keep_alive_seconds * 1_000 : undefined) };
  }
}
