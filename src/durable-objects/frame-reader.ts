/**
 * One client of a stream of frames (architecture section 5, readers): a cursor behind a pull-based stream with no buffer.
 * `pull` fetches what is there, up to a bound, so that is what a reader holds however slow it is; whoever writes never
 * waits for it or touches it (P8). A reader that leaves frames waiting for `STALL_MS` is ended with an error, so that
 * its client resumes with `Last-Event-ID` instead of hanging; one whose client left is noticed by the next heartbeat.
 */
import { HEARTBEAT_COMMENT, HEARTBEAT_MS } from "../protocol/heartbeat.ts";
import type { TextSource } from "./frame-cursor.ts";

/** Long enough for a phone to wake; short enough that a dead reader does not keep the object busy. */
export const STALL_MS = 30_000;

export interface FrameReaderOptions {
  readonly source: TextSource;
  readonly now: () => number;
  readonly onCancel?: () => void;
}

const encoder = new TextEncoder();

export class FrameReader {
  readonly #options: FrameReaderOptions;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** When the last pull was answered; `undefined` while one is being served. */
  #idleSince: number | undefined;
  #closed = false;

  constructor(options: FrameReaderOptions) {
    this.#options = options;
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

  /** Ends the reader when something waits for it, be it the end, and nobody asked for it for `STALL_MS`. */
  endIfStalled(now: number): void {
    if (this.#closed || this.#idleSince === undefined || now - this.#idleSince < STALL_MS) return;
    if (!this.#options.source.hasText()) return;
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
    } catch (fault) {
      // The stream ends with it, and so does the watch over its reader.
      this.#closed = true;
      throw fault;
    } finally {
      this.#idleSince = this.#options.now();
    }
  }

  /** The next thing to send, waiting for it; `undefined` at the end. */
  async #nextText(): Promise<string | undefined> {
    const { source } = this.#options;
    while (!this.#closed) {
      const { signal } = source;
      const seen = signal.version;
      const polled = await source.poll();
      if (polled === "ended") return undefined;
      if (polled !== "none") return polled.text;
      if (!(await signal.wait(seen, HEARTBEAT_MS))) return HEARTBEAT_COMMENT;
    }
    return undefined;
  }
}
