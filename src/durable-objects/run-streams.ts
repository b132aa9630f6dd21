/**
 * The object's streaming routes (protocol/thread-rpc.ts): a run's frames as SSE, and its final values as JSON that keeps
 * the connection warm. Both are pull-based: nothing here runs ahead of its client.
 */
import { RunSequence } from "../platform/durable-storage/run-sequence.ts";
import type { RunError, RunRecord } from "../platform/durable-storage/run-store.ts";
import type { NextFrame } from "../platform/durable-storage/frame-log.ts";
import { isTerminal } from "../domain/run/run-status.ts";
import { FrameCursor, type FrameSource, type TextSource } from "./frame-cursor.ts";
import { frameFilter } from "./frame-filter.ts";
import { FrameReader } from "./frame-reader.ts";
import type { RunService } from "./run-service.ts";
import { settledWithin } from "./settled-within.ts";
import type { ThreadContext } from "./thread-context.ts";
import { ThreadCursor, type ThreadRunsPort, type ThreadStreamStart } from "./thread-stream.ts";

/** How often a waiting `join` shows that it is alive: a newline, which JSON ignores. */
const JOIN_HEARTBEAT_MS = 5_000;

/**
 * A compressor on the way keeps a newline back until more comes: the client would see no sign of life, and a write to a
 * client that left would never fail, which is how its leaving is noticed. `identity` holds off the runtime's own
 * compression, `no-transform` that of an edge.
 */
const UNCOMPRESSED = { "content-encoding": "identity", "cache-control": "no-store, no-transform" } as const;

const encoder = new TextEncoder();

export interface StreamRequest {
  /** The last id the client has; everything when absent or -1. */
  readonly afterId: number;
  /** Wire modes; every recorded one when empty. */
  readonly modes: readonly string[];
  /** Of graphs within the run (`frame-filter.ts`); all when empty. */
  readonly namespaces: readonly string[];
  readonly cancelOnDisconnect: boolean;
}

/** Of `GET /threads/{t}/stream`. */
export interface ThreadStreamRequest {
  readonly start: ThreadStreamStart;
  /** Starts and ends of runs only. */
  readonly lifecycleOnly: boolean;
}

export class RunStreams {
  readonly #context: ThreadContext;
  readonly #runs: RunService;
  readonly #sequence: RunSequence;

  constructor(context: ThreadContext, runs: RunService) {
    this.#context = context;
    this.#runs = runs;
    this.#sequence = new RunSequence(context.meter.labelled("runs"));
  }

  stream(run: RunRecord, { afterId, modes, namespaces, cancelOnDisconnect }: StreamRequest): Response {
    const recorded: readonly string[] = run.command.body.stream_mode;
    const cursor = new FrameCursor({
      source: this.#source(run.runId),
      afterId: this.#idOf(run, afterId),
      wants: frameFilter({ modes, namespaces }),
      endsWithValues: modes.includes("values") && !recorded.includes("values"),
    });
    return this.#respond(cursor, {
      headers: this.#locations(run),
      onCancel: () => {
        if (cancelOnDisconnect) this.#cancelActive(run.runId);
      },
    });
  }

  /** The thread's runs, one behind another, for as long as the client stays. */
  threadStream({ start, lifecycleOnly }: ThreadStreamRequest): Response {
    return this.#respond(new ThreadCursor(this.#threadRuns(lifecycleOnly), start), { headers: {} });
  }

  #respond(source: TextSource, { headers, onCancel }: { headers: Record<string, string>; onCancel?: () => void }) {
    const reader = new FrameReader({ source, now: () => this.#context.now(), ...(onCancel ? { onCancel } : {}) });
    this.#context.live.watch(reader);
    return new Response(reader.stream(), {
      headers: { ...headers, "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" },
    });
  }

  #threadRuns(lifecycleOnly: boolean): ThreadRunsPort {
    const { live, runs } = this.#context;
    const find = (runId: string) => {
      const run = runs.find(runId);
      return run && { runId, updatedAt: run.updatedAt };
    };
    return {
      current: () => {
        const current = live.current();
        return current && { runId: current.runId, lastId: current.frames.lastId };
      },
      find,
      nextEnded: (after) => this.#sequence.nextEnded(after),
      newestEnded: () => this.#sequence.newestEnded(),
      beforeNextOf: (goneRunId) => this.#sequence.beforeNextOf(goneRunId),
      signal: live.undriven,
      isClosing: () => this.#context.isClosing,
      open: (runId, afterId) =>
        new FrameCursor({
          source: this.#source(runId),
          afterId: this.#idOf(runs.find(runId), afterId),
          wants: (event) => !lifecycleOnly || event === "metadata" || event === "error",
          toId: (frameId) => `${runId}:${frameId}`,
        }),
    };
  }

  /** The run's last values once it ended; `__error__` when it failed, `__interrupt__` when it waits for an answer. */
  join(run: RunRecord, options: { cancelOnDisconnect: boolean }): Response {
    const body = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const ended = await this.#endsWithin(run.runId, JOIN_HEARTBEAT_MS);
          controller.enqueue(encoder.encode(ended ? await this.#finalValues(run.runId) : "\n"));
          if (ended) controller.close();
        },
        cancel: () => {
          if (options.cancelOnDisconnect) this.#cancelActive(run.runId);
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(body, {
      headers: { ...this.#locations(run), ...UNCOMPRESSED, "content-type": "application/json" },
    });
  }

  /** The client left. A run that has ended asking keeps its question: whoever comes next can answer it. */
  #cancelActive(runId: string): void {
    const run = this.#context.runs.find(runId);
    if (run !== undefined && !isTerminal(run.status)) void this.#runs.cancel(runId, { wait: false });
  }

  async #finalValues(runId: string): Promise<string> {
    const run = this.#context.runs.find(runId);
    if (run === undefined) return JSON.stringify({ __error__: goneError(runId) });
    if (run.error) return JSON.stringify({ __error__: run.error });
    return this.#finalState(runId);
  }

  async #finalState(runId: string): Promise<string> {
    const run = this.#context.runs.find(runId);
    const values = await this.#valuesAfter(run);
    if (!run?.interrupts) return values;
    return JSON.stringify({ ...(JSON.parse(values) as object), __interrupt__: run.interrupts });
  }

  /** The state the run ended with, also when later runs changed it; the head once that checkpoint was pruned. */
  async #valuesAfter(run: RunRecord | undefined): Promise<string> {
    const at = run?.finalCheckpointId;
    if (at == null || !(await this.#context.hasCheckpoint(at))) return this.#context.graphs.renderState(undefined);
    return this.#context.values.render(at);
  }

  /** `Content-Location` names the run for the client; `Location` is what makes it resume a dropped stream. */
  #locations(run: RunRecord): Record<string, string> {
    const path = `/threads/${this.#context.threadId}/runs/${run.runId}`;
    return { "content-location": path, location: `${path}/stream` };
  }

  /** A run that nobody drives goes on when recovery finds it: until then it has not ended. */
  async #endsWithin(runId: string, timeoutMs: number): Promise<boolean> {
    const { live } = this.#context;
    const driven = live.get(runId);
    const signal = live.signalOf(runId);
    if (driven !== undefined) await settledWithin(driven.done, timeoutMs);
    else if (!this.#hasEnded(runId)) await signal.wait(signal.version, timeoutMs);
    return this.#hasEnded(runId);
  }

  #hasEnded(runId: string): boolean {
    if (this.#context.live.get(runId) !== undefined) return false;
    const stored = this.#context.runs.find(runId);
    return stored === undefined || isTerminal(stored.status);
  }

  /** An id that no frame of the run can have, whatever a crash took of them, is nowhere: from the start. */
  #idOf(run: RunRecord | undefined, afterId: number): number {
    if (run === undefined) return afterId;
    const reserved = this.#context.live.get(run.runId)?.frames.reserved ?? run.framesReserved;
    return afterId < reserved ? afterId : 0;
  }

  #source(runId: string): FrameSource {
    const gone = new GoneFrame(runId);
    const { live, frames, values } = this.#context;
    return {
      next: (afterId) => {
        const current = live.get(runId);
        if (current !== undefined) return current.frames.next(afterId);
        const stored = frames.next(runId, afterId);
        if (stored.kind !== "none" || !this.#hasEnded(runId)) return stored;
        const run = this.#context.runs.find(runId);
        if (run === undefined) return gone.next(afterId);
        // It ended before it started.
        if (run.attempt === 0) return stored;
        // A run that died before it stored a frame has none yet; only one that ended had some and lost them.
        return frames.has(runId) ? stored : { kind: "expired" };
      },
      ended: () => this.#hasEnded(runId),
      get signal() {
        return live.signalOf(runId);
      },
      renderValues: (checkpointId) => values.render(checkpointId),
      renderHead: () => this.#context.graphs.renderState(undefined),
      renderFinal: () => this.#finalState(runId),
    };
  }
}

/** What a reader of a run is told once when the run is taken out of the thread under it. */
class GoneFrame {
  readonly #runId: string;
  #told = false;

  constructor(runId: string) {
    this.#runId = runId;
  }

  next(afterId: number): NextFrame {
    if (this.#told) return { kind: "none" };
    this.#told = true;
    return { kind: "frame", frame: { id: afterId + 1, event: "error", data: JSON.stringify(goneError(this.#runId)) } };
  }
}

function goneError(runId: string): RunError {
  return { error: "RunRolledBack", message: `run '${runId}' was rolled back or deleted; nothing of it is left` };
}
