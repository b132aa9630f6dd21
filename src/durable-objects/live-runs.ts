/**
 * The runs this wake of the object is driving: their frames and their abort switch. Memory only: what must survive is in
 * the run row. Also watches over readers, so that the run itself never has to.
 */
import type { LiveFrames } from "../platform/durable-storage/live-frames.ts";
import { VersionSignal } from "../platform/durable-storage/version-signal.ts";
import type { FrameReader } from "./frame-reader.ts";

/** How often readers are looked at; a stalled one ends at most this much after its bound. */
export const READER_WATCH_MS = 5_000;

export interface LiveRun {
  readonly runId: string;
  readonly frames: LiveFrames;
  readonly signal: VersionSignal;
  readonly abort: AbortController;
  /** Delegations whose terminal event was sent. */
  readonly endedTasks: Set<string>;
  /** Settles when the run's terminal commit is done, or when this wake gave up on it. Never rejects. */
  done: Promise<void>;
}

export class LiveRuns {
  /** What a reader waits on while no wake drives its run: tells that one is being driven, or that one ended undriven. */
  readonly undriven = new VersionSignal();
  #settling: string | undefined;
  readonly #runs = new Map<string, LiveRun>();
  readonly #readers = new Set<FrameReader>();
  readonly #now: () => number;
  #watch: ReturnType<typeof setInterval> | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  get(runId: string): LiveRun | undefined {
    return this.#runs.get(runId);
  }

  get size(): number {
    return this.#runs.size;
  }

  /** The one run of the thread that is being driven. */
  current(): LiveRun | undefined {
    return this.#runs.values().next().value;
  }

  /** The run that state is written for: the one being driven, or the one recovery settles; `undefined` for an edit. */
  writingRunId(): string | undefined {
    return this.current()?.runId ?? this.#settling;
  }

  /** What `act` writes to state belongs to a run that nobody drives: the log hears of it like of a driven one's. */
  async settle(runId: string, act: () => Promise<void>): Promise<void> {
    this.#settling = runId;
    try {
      await act();
    } finally {
      this.#settling = undefined;
    }
  }

  /** Tells of new frames of a run, or, while nobody drives it, that somebody does again or that it ended. */
  signalOf(runId: string): VersionSignal {
    return this.#runs.get(runId)?.signal ?? this.undriven;
  }

  add(run: LiveRun): void {
    this.#runs.set(run.runId, run);
    this.undriven.bump();
  }

  /** Recovery ended a run that nobody drove. */
  endedUndriven(): void {
    this.undriven.bump();
  }

  /** Readers are woken to find the end. */
  remove(runId: string): void {
    const run = this.#runs.get(runId);
    this.#runs.delete(runId);
    run?.signal.bump();
  }

  /** Readers that are looked after: those whose client left are dropped at the next look. */
  get readers(): number {
    return this.#readers.size;
  }

  watch(reader: FrameReader): void {
    this.#readers.add(reader);
    this.#watch ??= setInterval(() => {
      this.#look();
    }, READER_WATCH_MS);
  }

  #look(): void {
    for (const reader of this.#readers) {
      reader.endIfStalled(this.#now());
      if (reader.closed) this.#readers.delete(reader);
    }
    if (this.#readers.size > 0) return;
    clearInterval(this.#watch);
    this.#watch = undefined;
  }
}
