/**
 * Frames of one live run before they are stored. The driver appends; readers take from here what is newer than the
 * stored blocks. Appending never waits for a reader (P8): it bumps a version and wakes whoever waits.
 */
import {
  FRAME_BLOCK_BYTES_MAX,
  FRAME_RESERVATION,
  type Frame,
  type FrameData,
  type FrameLog,
  type NextFrame,
} from "./frame-log.ts";
import type { VersionSignal } from "./version-signal.ts";

/**
 * A frame is stored within one row; a larger one says how large it was. Three bytes a character stay under 2 MB,
 * because a frame past the block's bound shares its row with no other.
 */
const FRAME_CHARS_MAX = 600_000;

export interface LiveFramesOptions {
  readonly runId: string;
  readonly log: FrameLog;
  readonly signal: VersionSignal;
  /** Numbering goes on at the end of the last persisted reservation. */
  readonly reserved: number;
  readonly isFirstAttempt: boolean;
  readonly bytesMax: number;
  /** Persists that ids below `reserved` may be handed out: one row. */
  readonly saveReservation: (reserved: number) => void;
}

export class LiveFrames {
  readonly #options: LiveFramesOptions;
  #nextId: number;
  #reserved: number;
  #pending: Frame[] = [];
  /** An estimate that costs nothing a frame: the log measures what it writes, and splits what is too large. */
  #pendingChars = 0;
  #storedBytes: number;

  constructor(options: LiveFramesOptions) {
    this.#options = options;
    this.#reserved = options.reserved;
    this.#nextId = options.isFirstAttempt ? 1 : options.reserved;
    this.#storedBytes = options.isFirstAttempt ? 0 : options.log.storedBytes(options.runId);
  }

  /** Answers with the frame's id. `payload` may need to know it. */
  append(event: string, payload: FrameData | ((id: number) => FrameData)): number {
    const id = this.#nextId;
    const data = boundedData(typeof payload === "function" ? payload(id) : payload);
    const chars = charsOf(data);
    if (this.#pendingChars + chars > FRAME_BLOCK_BYTES_MAX) this.flush();
    if (this.#nextId >= this.#reserved) {
      this.#reserved += FRAME_RESERVATION;
      this.#options.saveReservation(this.#reserved);
    }
    this.#pending.push({ id, event, data });
    this.#pendingChars += chars;
    this.#nextId += 1;
    if (this.#pendingChars >= FRAME_BLOCK_BYTES_MAX) this.flush();
    this.#options.signal.bump();
    return id;
  }

  /** The newest frame's id; 0 before the first. */
  get lastId(): number {
    return this.#nextId - 1;
  }

  get reserved(): number {
    return this.#reserved;
  }

  /** Stores what is pending. Synchronous: callable inside a transaction. */
  flush(): void {
    const { log, runId, bytesMax } = this.#options;
    if (this.#pending.length === 0) return;
    this.#storedBytes += log.writeBlock(runId, this.#pending);
    this.#pending = [];
    this.#pendingChars = 0;
    while (this.#storedBytes > bytesMax) {
      const dropped = log.dropOldest(runId);
      if (dropped === 0) break;
      this.#storedBytes -= dropped;
    }
  }

  /** The frame after `afterId`, stored or pending. */
  next(afterId: number): NextFrame {
    const first = this.#pending[0];
    if (first !== undefined && afterId >= first.id - 1) return this.#nextPending(afterId, first.id);
    const stored = this.#options.log.next(this.#options.runId, afterId);
    if (stored.kind !== "none" || first === undefined) return stored;
    return first.id > afterId ? { kind: "frame", frame: first } : stored;
  }

  #nextPending(afterId: number, firstId: number): NextFrame {
    // Pending ids are contiguous, so the position is arithmetic.
    const frame = this.#pending[Math.max(0, afterId - firstId + 1)];
    return frame === undefined ? { kind: "none" } : { kind: "frame", frame };
  }
}

/** A part that names a place of the state, or the state as a whole, and its quotes. */
const NAMED_PART_CHARS = 64;

function charsOf(data: FrameData): number {
  if (typeof data === "string") return data.length;
  if ("piece" in data) return data.piece.length + NAMED_PART_CHARS;
  const parts = data.parts ?? [];
  return parts.reduce(
    (sum, part) => sum + (typeof part === "string" ? part.length : NAMED_PART_CHARS),
    NAMED_PART_CHARS,
  );
}

function boundedData(data: FrameData): FrameData {
  const characters = charsOf(data);
  if (characters <= FRAME_CHARS_MAX) return data;
  return JSON.stringify({ code: "frame_too_large", characters, limit: FRAME_CHARS_MAX });
}
