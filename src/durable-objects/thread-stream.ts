/**
 * A place in a thread's runs, one behind another (`GET /threads/{t}/stream`): the frames of the run under way, then of the
 * next. Owns which run follows which and the ids of such a stream; frames are the run's own.
 *
 * A run follows another when it ended later: runs of a thread are driven one at a time, so the one being driven is the
 * last. An id is `<run_id>:<frame id>`, and `<run_id>:end` once a run was told to its end. The stream has no end of its own.
 */
import type { EndedRun } from "../platform/durable-storage/run-sequence.ts";
import type { VersionSignal } from "../platform/durable-storage/version-signal.ts";
import type { FrameCursor, Polled, TextSource } from "./frame-cursor.ts";

export interface ThreadRunsPort {
  /** The run being driven, and its newest frame. */
  current(): { readonly runId: string; readonly lastId: number } | undefined;
  find(runId: string): EndedRun | undefined;
  /** The next one behind `after` that has frames; the first of all without it. */
  nextEnded(after: EndedRun | undefined): string | undefined;
  newestEnded(): EndedRun | undefined;
  /** The place of a run that is gone; `undefined` when no run behind it has ended. */
  beforeNextOf(goneRunId: string): EndedRun | undefined;
  /** Tells that a run is being driven, or that one ended. */
  readonly signal: VersionSignal;
  /** The thread is being deleted. */
  isClosing(): boolean;
  open(runId: string, afterId: number): FrameCursor;
}

/** Where a client stands: from now on, from the first frame there is, or behind what it has. */
export type ThreadStreamStart = "now" | "first" | { readonly runId: string; readonly frameId: number | "end" };

const END_MARK = "end";
/** What orders runs that are gone among those that are not. Another text is no place that was given out: the start. */
const RUN_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function parseThreadEventId(header: string | null): ThreadStreamStart {
  if (header === null || header === "") return "now";
  const [runId = "", place = ""] = header.split(":");
  if (place === END_MARK && RUN_ID.test(runId)) return { runId, frameId: END_MARK };
  const frameId = Number(place);
  return RUN_ID.test(runId) && Number.isSafeInteger(frameId) && frameId > 0 ? { runId, frameId } : "first";
}

export class ThreadCursor implements TextSource {
  readonly #runs: ThreadRunsPort;
  #current: { readonly runId: string; readonly cursor: FrameCursor } | undefined;
  #last: EndedRun | undefined;

  constructor(runs: ThreadRunsPort, start: ThreadStreamStart) {
    this.#runs = runs;
    if (start === "now") this.#startNow();
    else if (start !== "first") this.#startAfter(start);
  }

  get signal(): VersionSignal {
    return this.#current?.cursor.signal ?? this.#runs.signal;
  }

  hasText(): boolean {
    if (this.#runs.isClosing()) return true;
    return this.#current === undefined ? this.#nextRun() !== undefined : this.#current.cursor.hasText();
  }

  async poll(): Promise<Polled> {
    for (;;) {
      if (this.#runs.isClosing()) return "ended";
      this.#current ??= this.#open(this.#nextRun());
      if (this.#current === undefined) return "none";
      const { runId, cursor } = this.#current;
      const polled = await cursor.poll();
      if (polled !== "ended") return polled;
      this.#current = undefined;
      // A run that was deleted meanwhile had its place here: what comes is behind it.
      this.#last = this.#runs.find(runId) ?? this.#last;
      const data = JSON.stringify({ status: "run_done", run_id: runId });
      return { text: `event: metadata\ndata: ${data}\nid: ${runId}:${END_MARK}\n\n` };
    }
  }

  #startNow(): void {
    const current = this.#runs.current();
    this.#last = this.#runs.newestEnded();
    if (current !== undefined) this.#current = this.#open(current.runId, current.lastId);
  }

  /** A client that stood in a run which is gone goes on with what came behind it, from its first frame. */
  #startAfter({ runId, frameId }: Exclude<ThreadStreamStart, string>): void {
    const run = this.#runs.find(runId);
    if (run === undefined) {
      this.#last = this.#runs.beforeNextOf(runId) ?? this.#runs.newestEnded();
      return;
    }
    if (frameId === END_MARK) this.#last = run;
    else this.#current = this.#open(runId, frameId);
  }

  #nextRun(): string | undefined {
    return this.#runs.nextEnded(this.#last) ?? this.#runs.current()?.runId;
  }

  #open(runId: string | undefined, afterId = 0): { runId: string; cursor: FrameCursor } | undefined {
    return runId === undefined ? undefined : { runId, cursor: this.#runs.open(runId, afterId) };
  }
}
