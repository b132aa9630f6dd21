/**
 * The object's streaming routes (protocol/thread-rpc.ts): a run's frames as SSE, and its final values as JSON that keeps
 * the connection warm. Both are pull-based: nothing here runs ahead of its client.
 */
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import { isTerminal } from "../domain/run/run-status.ts";
import { FrameReader, type FrameSource } from "./frame-reader.ts";
import type { RunService } from "./run-service.ts";
import type { ThreadContext } from "./thread-context.ts";

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
  readonly cancelOnDisconnect: boolean;
}

export class RunStreams {
  readonly #context: ThreadContext;
  readonly #runs: RunService;

  constructor(context: ThreadContext, runs: RunService) {
    this.#context = context;
    this.#runs = runs;
  }

  stream(run: RunRecord, request: StreamRequest): Response {
    const wanted = new Set(request.modes.map((mode) => (mode === "messages-tuple" ? "messages" : mode)));
    const reader = new FrameReader({
      source: this.#source(run),
      afterId: request.afterId,
      wants: (mode) => wanted.size === 0 || wanted.has(mode),
      now: () => this.#context.now(),
      onCancel: () => {
        if (request.cancelOnDisconnect) void this.#runs.cancel(run.runId, { wait: false });
      },
    });
    this.#context.live.watch(reader);
    return new Response(reader.stream(), {
      headers: {
        ...this.#locations(run),
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-store",
      },
    });
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
          if (options.cancelOnDisconnect) void this.#runs.cancel(run.runId, { wait: false });
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(body, {
      headers: { ...this.#locations(run), ...UNCOMPRESSED, "content-type": "application/json" },
    });
  }

  async #finalValues(runId: string): Promise<string> {
    const run = this.#context.runs.find(runId);
    if (run?.error) return JSON.stringify({ __error__: run.error });
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

  #source(run: RunRecord): FrameSource {
    const { live, frames, values } = this.#context;
    return {
      next: (afterId) => {
        const current = live.get(run.runId);
        if (current !== undefined) return current.frames.next(afterId);
        const stored = frames.next(run.runId, afterId);
        // A run that died before it stored a frame has none yet; only one that ended had some and lost them.
        const isExpired = stored.kind === "none" && !frames.has(run.runId) && this.#hasEnded(run.runId);
        return isExpired ? { kind: "expired" } : stored;
      },
      ended: () => this.#hasEnded(run.runId),
      get signal() {
        return live.signalOf(run.runId);
      },
      renderValues: (checkpointId) => values.render(checkpointId),
      renderHead: () => this.#context.graphs.renderState(undefined),
    };
  }
}

async function settledWithin(done: Promise<void>, timeoutMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([done, timeout]);
  clearTimeout(timer);
}
