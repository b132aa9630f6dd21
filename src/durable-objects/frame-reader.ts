/**
 * One client reading one run's frames (architecture section 5, readers). A reader is a cursor behind a pull-based stream
 * with no buffer: `pull` fetches one frame, so a reader holds one frame of memory however slow it is, and the run never
 * waits for it or touches it (P8). A reader that leaves frames waiting for `STALL_MS` is ended with an error, so that
 * its client resumes with `Last-Event-ID` instead of hanging.
 */
import type { Frame, NextFrame } from "../platform/durable-storage/frame-log.ts";
import type { VersionSignal } from "../platform/durable-storage/version-signal.ts";
import { HEARTBEAT_COMMENT, HEARTBEAT_MS } from "../protocol/heartbeat.ts";

/** Long enough for a phone to wake; short enough that a dead reader does not keep the object busy. */
export const STALL_MS = 30_000;

export interface FrameSource {
  next(afterId: number): NextFrame | { readonly kind: "expired" };
  /** True when no further frame can come. */
  ended(): boolean;
  readonly signal: VersionSignal;
  /** The JSON of the state at a checkpoint. */
  renderValues(checkpointId: string): Promise<string>;
  /** The JSON of the newest state, for a reader that fell behind a gap. */
  renderHead(): Promise<string>;
}

export interface FrameReaderOptions {
  readonly source: FrameSource;
  /** The last id the client has; 0 for everything. */
  readonly afterId: number;
  /** Frames this reader wants; `metadata`, `error` and `gap` always pass. */
  readonly wants: (event: string) => boolean;
  readonly now: () => number;
  readonly onCancel?: () => void;
}

const encoder = new TextEncoder();
const ALWAYS_SENT = new Set(["metadata", "error", "gap"]);

export class FrameReader {
  readonly #options: FrameReaderOptions;
  #cursor: number;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** When the last pull was answered; `undefined` while one is being served. */
  #idleSince: number | undefined;
  #closed = false;
  #toldExpired = false;

  constructor(options: FrameReaderOptions) {
    this.#options = options;
    this.#cursor = options.afterId;
    this.#idleSince = options.now();
  }

  stream(): ReadableStream<Uint8Array> {
    return new ReadableStream(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: (controller) => this.#pull(controller),
        cancel: () => {
          this.#closed = true;
          this.#options.onCancel?.();
        },
      },
      { highWaterMark: 0 },
    );
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Ends the reader when it has frames waiting and nobody asked for them for `STALL_MS`. */
  endIfStalled(now: number): void {
    if (this.#closed || this.#idleSince === undefined || now - this.#idleSince < STALL_MS) return;
    if (this.#options.source.next(this.#cursor).kind !== "frame") return;
    this.#closed = true;
    this.#controller?.error(new Error("reader stalled: frames waited for 30 s; resume with Last-Event-ID"));
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#idleSince = undefined;
    try {
      const text = await this.#nextText();
      if (this.#closed) return;
      if (text === undefined) {
        this.#closed = true;
        controller.close();
      } else {
        controller.enqueue(encoder.encode(text));
      }
    } finally {
      this.#idleSince = this.#options.now();
    }
  }

  /** The next thing to send, waiting for it; `undefined` at the end of the run's frames. */
  async #nextText(): Promise<string | undefined> {
    const { source } = this.#options;
    while (!this.#closed) {
      const seen = source.signal.version;
      const next = source.next(this.#cursor);
      if (next.kind === "frame") {
        this.#cursor = next.frame.id;
        if (this.#wanted(next.frame)) return this.#encode(next.frame);
        continue;
      }
      if (next.kind === "expired") return this.#expired();
      if (next.kind === "gap") return this.#encodeGap(next.firstAvailableId);
      if (source.ended()) return undefined;
      if (!(await source.signal.wait(seen, HEARTBEAT_MS))) return HEARTBEAT_COMMENT;
    }
    return undefined;
  }

  #wanted(frame: Frame): boolean {
    const mode = frame.event.split("|", 1)[0] ?? frame.event;
    return ALWAYS_SENT.has(mode) || this.#options.wants(mode);
  }

  async #encode(frame: Frame): Promise<string> {
    const data =
      typeof frame.data === "string" ? frame.data : await this.#options.source.renderValues(frame.data.checkpointId);
    return `event: ${frame.event}\ndata: ${data}\nid: ${frame.id}\n\n`;
  }

  /** Every frame of the run is gone: said once, then the stream ends. */
  async #expired(): Promise<string | undefined> {
    if (this.#toldExpired) return undefined;
    this.#toldExpired = true;
    return this.#gapText(null);
  }

  /** Says what is missing, then gives the state that makes up for it. */
  async #encodeGap(firstAvailableId: number): Promise<string> {
    const text = await this.#gapText(firstAvailableId);
    this.#cursor = firstAvailableId - 1;
    return text;
  }

  async #gapText(firstAvailableId: number | null): Promise<string> {
    const gap = JSON.stringify({ requested_id: this.#cursor, first_available_id: firstAvailableId });
    const values = await this.#options.source.renderHead();
    return `event: gap\ndata: ${gap}\n\nevent: values\ndata: ${values}\n\n`;
  }
}
