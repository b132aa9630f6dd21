/**
 * Drives one run: iterates the graph's stream, turns chunks into frames, commits the end. Owns a run between the commit
 * that marks it running and its terminal commit; recovery hands it the same run again after a crash.
 *
 * - Runs with `durability: "sync"`: a step's checkpoint is stored before the next step starts (P2).
 * - The terminal status, its event and the last frame commit in one transaction (P1).
 * - Nothing here awaits a reader.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { isUnknownInterruptError } from "@langchain/langgraph";
import type { BuiltGraph } from "../agent/graph-catalog.ts";
import { PRE_RUN_MESSAGE_IDS_KEY, type PreRunMessageIds } from "../agent/graph/pre-run-messages.ts";
import { toWire } from "../agent/wire/to-wire.ts";
import { noteOutOfMemory } from "../domain/run/recovery.ts";
import { classifyPlatformError } from "../domain/run/recovery-errors.ts";
import { unreachable } from "../domain/shared/assert.ts";
import { RetiredInstanceError } from "../domain/shared/retired-instance.ts";
import type { RunError, RunRecord } from "../platform/durable-storage/run-store.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { TaskEvent } from "../domain/delegation/task-events.ts";
import { cancelUnanswered } from "./cancel-unanswered.ts";
import { runConfig } from "./run-config.ts";
import { saveRunEnd } from "./run-end.ts";
import { rollBackRun } from "./run-rollback.ts";
import type { LiveRun } from "./live-runs.ts";
import { findNewFallback } from "./new-fallback.ts";
import { openLiveRun } from "./open-live-run.ts";
import { openTaskEnds } from "./open-task-ends.ts";
import { preRunMessageIdsOf } from "./pre-run-messages.ts";
import { type RunStart, startConfig } from "./run-start.ts";
import { breakpointsOf } from "./run-start-breakpoints.ts";
import { waitingInterrupts } from "./run-start-interrupts.ts";
import { withStopReason } from "./run-stop-reason.ts";
import { type StreamChunk, streamChunks } from "./stream-chunks.ts";
import { FrameMapper } from "./stream-frames.ts";
import type { ThreadContext } from "./thread-context.ts";

type RunOutcome =
  | { readonly kind: "success"; readonly values: unknown }
  | { readonly kind: "waiting"; readonly interrupts: readonly unknown[] }
  | { readonly kind: "cancelled" }
  | { readonly kind: "failed"; readonly error: RunError; readonly values?: unknown };

/** One drive of a run: what its steps share. */
interface Drive {
  readonly live: LiveRun;
  readonly built: BuiltGraph;
  readonly before: PreRunMessageIds;
}

/** Frames older than this are stored with the next step, so that a crash loses at most so much of a slow stream. */
const FRAME_FLUSH_AFTER_MS = 1_000;

export class RunDriver {
  readonly #context: ThreadContext;
  #framesStoredAt = 0;

  constructor(context: ThreadContext) {
    this.#context = context;
  }

  /** Never rejects: a run that cannot be ended here stays running in storage, for recovery to find. */
  async drive(run: RunRecord, start: RunStart): Promise<void> {
    const live = openLiveRun(this.#context, run);
    live.done = this.#driveLive(run, start, live);
    return live.done;
  }

  /** A step committed, of the run or of a child: store frames that have waited long enough. Runs inside the saver's transaction. */
  onStep(): void {
    const now = this.#context.now();
    if (now - this.#framesStoredAt < FRAME_FLUSH_AFTER_MS) return;
    this.#framesStoredAt = now;
    this.#context.live.current()?.frames.flush();
  }

  async #driveLive(run: RunRecord, start: RunStart, live: LiveRun): Promise<void> {
    this.#framesStoredAt = this.#context.now();
    try {
      live.frames.append("metadata", JSON.stringify({ run_id: run.runId, attempt: run.attempt }));
      // The client's first frame leaves before the graph takes the thread: building it is a turn of work.
      await scheduler.wait(0);
      const built = await this.#context.graphs.forRun(run);
      const drive: Drive = { live, built, before: preRunMessageIdsOf(run, built) };
      await this.#finish(run, await this.#execute(run, start, drive), drive);
    } catch (fault) {
      this.#context.onFault(fault);
    } finally {
      this.#context.live.remove(run.runId);
    }
    this.#context.afterRun();
  }

  /** A request to end the run that was stored wins over how its graph ended, as it does after a crash. */
  async #finish(run: RunRecord, reached: RunOutcome, drive: Drive): Promise<void> {
    const stored = this.#context.runs.find(run.runId);
    if (stored?.cancel?.action === "rollback") return this.#rollBack(stored);
    const outcome: RunOutcome = stored?.cancelRequested === true ? { kind: "cancelled" } : reached;
    await this.#settle(run, outcome, drive);
    const notes = await withStopReason(run, drive.built, { ...drive, ...outcome });
    await this.#context.failpoint?.("terminal_commit", outcome.kind);
    if (this.#isOvertaken(run, outcome)) return this.#finish(run, outcome, drive);
    this.#commitEnd(run, { ...toEnd(outcome), ...notes }, drive.live);
  }

  /** A cancel came while the end was prepared. */
  #isOvertaken({ runId }: RunRecord, outcome: RunOutcome): boolean {
    const stored = this.#context.runs.find(runId);
    if (stored?.cancel?.action === "rollback") return true;
    return stored?.cancelRequested === true && outcome.kind !== "cancelled";
  }

  async #rollBack(run: RunRecord): Promise<void> {
    await this.#context.failpoint?.("rollback");
    this.#context.storage.transactionSync(() => {
      rollBackRun(this.#context, run);
    });
  }

  async #execute(run: RunRecord, start: RunStart, drive: Drive): Promise<RunOutcome> {
    const { body } = run.command;
    const { live, built } = drive;
    const config = driveConfig(run, drive);
    try {
      // A cancel that came before the first step: nothing runs.
      if (live.abort.signal.aborted) return { kind: "cancelled" };
      const chunks = streamChunks(built, start.input, {
        runId: run.runId,
        modes: body.stream_mode,
        subgraphs: body.stream_subgraphs === true,
        options: {
          ...startConfig(config, start),
          ...breakpointsOf(body),
          durability: "sync",
          signal: live.abort.signal,
          ...(body.context ? { context: body.context } : {}),
        },
      });
      const mapper = await this.#mapperFor(run, drive);
      let last: RootCheckpoint | undefined;
      for await (const chunk of chunks) {
        last = rootCheckpointOf(chunk) ?? last;
        this.#emit(live, mapper, chunk);
      }
      // The last checkpoint says that nothing follows: there is no need to load it again.
      if (last?.next.length === 0) return await this.#endOf(run, drive, last.values);
      return await this.#outcomeOf(run, drive, config);
    } catch (error) {
      // Not an end of the run: another instance drives it.
      if (error instanceof RetiredInstanceError) throw error;
      if (live.abort.signal.aborted) return { kind: "cancelled" };
      // An answer that was taken before a crash is not taken again: the graph asks for something else by now.
      if (isUnknownInterruptError(error)) return this.#outcomeOf(run, drive, config);
      this.#leaveToRecovery(run, error);
      this.#context.onRunError(run, error);
      return { kind: "failed", error: toRunError(error) };
    }
  }

  /** Throws what is the platform's failure and not the run's: the run stays running in storage. */
  #leaveToRecovery({ runId }: RunRecord, error: unknown): void {
    const kind = classifyPlatformError(error);
    if (kind === "application") return;
    const stored = this.#context.runs.find(runId);
    if (kind === "out_of_memory" && stored !== undefined)
      this.#context.runs.save({ ...stored, recovery: noteOutOfMemory(stored.recovery) });
    throw error;
  }

  /** Only the legacy `messages` asks what stood before the run: it may load a state. */
  async #mapperFor({ command: { body } }: RunRecord, { before }: Drive): Promise<FrameMapper> {
    return new FrameMapper(body.stream_mode, body.stream_mode.includes("messages") ? await before() : undefined);
  }

  #emit(live: LiveRun, mapper: FrameMapper, chunk: StreamChunk): void {
    const ended = endedTaskOf(chunk);
    if (ended !== undefined) live.endedTasks.add(ended);
    for (const frame of mapper.map(chunk)) {
      const { event, data, rendered } = frame;
      if (rendered !== undefined && typeof data === "object" && "checkpointId" in data) {
        this.#context.values.prime(data.checkpointId, rendered);
      }
      live.frames.append(event, data);
    }
  }

  /** A stream that ended by itself ended the run, unless the graph waits for an answer. */
  async #outcomeOf(run: RunRecord, drive: Drive, config: RunnableConfig): Promise<RunOutcome> {
    const state = await drive.built.graph.getState(config);
    // Steps are left: the graph asks, or the run stopped at a breakpoint.
    const interrupts = await waitingInterrupts(this.#context, state);
    if (interrupts.length > 0 || state.next.length > 0) return { kind: "waiting", interrupts: interrupts.map(toWire) };
    return this.#endOf(run, drive, state.values);
  }

  /** A success, unless an answer of this run stands in for a model call that failed. */
  async #endOf(run: RunRecord, { before }: Drive, values: unknown): Promise<RunOutcome> {
    const error = await findNewFallback(values, before);
    if (error === undefined) return { kind: "success", values };
    this.#context.onModelFailure(run, error);
    return { kind: "failed", error, values };
  }

  /** Before the end of a run that did not finish by itself: every call it left open gets a result (P5). */
  async #settle(run: RunRecord, outcome: RunOutcome, { built, live }: Drive): Promise<void> {
    if (run.graphId !== LEAD_GRAPH_ID || outcome.kind === "success" || outcome.kind === "waiting") return;
    if (outcome.kind === "cancelled") await this.#context.failpoint?.("cancel");
    for (const told of openTaskEnds(this.#context, run, live.endedTasks)) live.frames.append("custom", told);
    await cancelUnanswered(this.#context, run, built);
  }

  #commitEnd(run: RunRecord, end: RunEnd, live: LiveRun): void {
    const stored = this.#context.runs.find(run.runId) ?? run;
    const finalCheckpointId = this.#context.headCheckpointId();
    const ended: RunRecord = { ...stored, ...end, finalCheckpointId, updatedAt: this.#context.now() };
    if (end.error !== null) live.frames.append("error", JSON.stringify(end.error));
    this.#context.storage.transactionSync(() => {
      this.#context.wake.assertCurrent();
      live.frames.flush();
      saveRunEnd(this.#context, { ...ended, framesReserved: live.frames.reserved });
    });
  }
}

/** Only the lead's hooks ask what stood before the run; a graph of the operator's is given nothing internal. */
function driveConfig(run: RunRecord, { built, before }: Drive): RunnableConfig {
  const config = runConfig(run, built);
  if (run.graphId !== LEAD_GRAPH_ID) return config;
  return { ...config, configurable: { ...config.configurable, [PRE_RUN_MESSAGE_IDS_KEY]: before } };
}

type RunEnd = Pick<RunRecord, "status" | "error" | "interrupts" | "notes">;

function toEnd(outcome: RunOutcome): RunEnd {
  switch (outcome.kind) {
    case "success":
      return { status: "success", error: null, interrupts: null };
    case "waiting":
      return { status: "interrupted", error: null, interrupts: outcome.interrupts };
    case "cancelled":
      return { status: "interrupted", error: null, interrupts: null };
    case "failed":
      return { status: "error", error: outcome.error, interrupts: null };
    default:
      return unreachable(outcome);
  }
}

/** The delegation whose terminal event a chunk is. */
function endedTaskOf([, mode, payload]: StreamChunk): string | undefined {
  if (mode !== "custom") return undefined;
  // An operator's own graph may write anything, null included.
  const { type, task_id } = (payload ?? {}) as Partial<TaskEvent>;
  return type === undefined || type === "task_started" || type === "task_running" ? undefined : task_id;
}

interface RootCheckpoint {
  /** What the graph does after it. */
  readonly next: readonly string[];
  readonly values: unknown;
}

/** A checkpoint of the graph's own; `undefined` for any other chunk. */
function rootCheckpointOf([namespace, mode, payload]: StreamChunk): RootCheckpoint | undefined {
  return mode === "checkpoints" && namespace.length === 0 ? (payload as RootCheckpoint) : undefined;
}

/** What a client reads of a failure: the error's name and message, never a stack. */
function toRunError(error: unknown): RunError {
  return error instanceof Error
    ? { error: error.name, message: error.message }
    : { error: "Error", message: String(error) };
}
