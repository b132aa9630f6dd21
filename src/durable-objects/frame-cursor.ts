/**
 * A place in one run's frames, and the text of what comes next (architecture section 5, readers). Owns the order of
 * frames, gap and end as one reader sees them; who waits for more is the reader.
 *
 * Invariant: "ended" is said only when, at one moment, no frame was left and none could come.
 */
import type { Frame, NextFrame } from "../platform/durable-storage/frame-log.ts";
import type { VersionSignal } from "../platform/durable-storage/version-signal.ts";
import { PartialMessages } from "./partial-messages.ts";
import { renderParts } from "./state-parts.ts";

/** Frames that are there already go together until they are this much: a chunk a frame cost more than its frames. */
const TEXT_CHARS_ENOUGH = 16 * 1024;

export interface FrameSource {
  next(afterId: number): NextFrame | { readonly kind: "expired" };
  /** True when no further frame can come. */
  ended(): boolean;
  readonly signal: VersionSignal;
  /** The JSON of the state at a checkpoint. */
  renderValues(checkpointId: string): Promise<string>;
  /** The JSON of the newest state, for a reader that fell behind a gap. */
  renderHead(): Promise<string>;
  /** The JSON of the state the run ended with. */
  renderFinal(): Promise<string>;
}

/** What a place has to say: text, nothing yet, or nothing ever again. */
export type Polled = { readonly text: string } | "none" | "ended";

/** What a `FrameReader` follows. */
export interface TextSource {
  poll(): Promise<Polled>;
  /** Whether `poll` would answer at once, with text or with the end. */
  hasText(): boolean;
  readonly signal: VersionSignal;
}

export interface FrameCursorOptions {
  readonly source: FrameSource;
  /** The last id the client has; 0 for everything. */
  readonly afterId: number;
  readonly wants: (event: string) => boolean;
  /** Asked for `values` of a run that did not record any: the last ones are given at its end. */
  readonly endsWithValues?: boolean;
  /** How an id is written, where a frame's own is not enough. */
  readonly toId?: (frameId: number) => string;
}

export class FrameCursor implements TextSource {
  readonly #options: FrameCursorOptions;
  readonly #partials: PartialMessages;
  #cursor: number;
  #toldExpired = false;
  #owesValues: boolean;

  constructor(options: FrameCursorOptions) {
    this.#options = options;
    this.#cursor = options.afterId;
    this.#owesValues = options.endsWithValues === true;
    this.#partials = new PartialMessages((afterId) => options.source.next(afterId));
  }

  get signal(): VersionSignal {
    return this.#options.source.signal;
  }

  hasText(): boolean {
    const { source } = this.#options;
    return source.next(this.#cursor).kind !== "none" || source.ended();
  }

  async poll(): Promise<Polled> {
    const { source, wants } = this.#options;
    let text = "";
    for (;;) {
      const next = source.next(this.#cursor);
      if (next.kind === "frame") {
        this.#cursor = next.frame.id;
        if (!wants(next.frame.event)) continue;
        const shown = this.#render(next.frame);
        // Nothing is awaited for a frame that is text already: that turn was most of what replaying it cost.
        text += this.#encode(next.frame, typeof shown === "string" ? shown : await shown);
        if (text.length >= TEXT_CHARS_ENOUGH) return { text };
        continue;
      }
      if (text !== "") return { text };
      if (next.kind === "gap") return { text: await this.#encodeGap(next.firstAvailableId) };
      if (next.kind === "expired") return this.#expired();
      if (!source.ended()) return "none";
      return this.#owesValues ? { text: await this.#finalValues() } : "ended";
    }
  }

  /** "" for a frame of which nothing is left to show. */
  #encode({ id, event }: Frame, shown: string | undefined): string {
    return shown === undefined ? "" : `event: ${event}\ndata: ${shown}\nid: ${this.#id(id)}\n\n`;
  }

  #render({ id, data }: Frame): string | Promise<string | undefined> {
    return typeof data === "string" ? data : this.#assemble(id, data);
  }

  async #assemble(id: number, data: Exclude<Frame["data"], string>): Promise<string | undefined> {
    if ("piece" in data) return this.#partials.render(id, data);
    const state = await this.#options.source.renderValues(data.checkpointId);
    return data.parts === undefined ? state : renderParts(data.parts, state);
  }

  #id(frameId: number): string {
    return this.#options.toId?.(frameId) ?? String(frameId);
  }

  /** Without an id: it is no frame of the run's. */
  async #finalValues(): Promise<string> {
    this.#owesValues = false;
    return `event: values\ndata: ${await this.#options.source.renderFinal()}\n\n`;
  }

  /** Every frame of the run is gone: said once, then the stream ends. */
  async #expired(): Promise<Polled> {
    if (this.#toldExpired) return "ended";
    this.#toldExpired = true;
    this.#owesValues = false;
    return { text: await this.#gapText(null) };
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
