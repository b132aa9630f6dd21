/**
 * The frames of a run: what clients stream. Owns ids, packing into blocks, the byte bound and expiry.
 * Does not own rendering: a `values` frame is a reference to its checkpoint, rendered by whoever reads it.
 *
 * Invariants: ids rise within a run and never repeat across attempts, because an id is handed out only below a
 * persisted reservation (architecture section 5); a reader sees frames in id order; frames of a run cost at most
 * `bytesMax`, past it the oldest block goes and a reader that asks for it is told of the gap.
 */
import { Buffer } from "node:buffer";
import { rowsOf, type SqlExecutor } from "./metered-sql.ts";

/** Version of the row's shape. PERSISTED. */
const FRAME_ROW_VERSION = 1;

/** UTF-8. A block is one row, read and parsed as a whole: large enough to be few, small enough to hold in memory. */
export const FRAME_BLOCK_BYTES_MAX = 256 * 1024;

/** Ids reserved with one row. A crash skips at most this many. */
export const FRAME_RESERVATION = 500;

/** Parsed blocks kept for readers that replay; four blocks are at most 1 MB of text. */
const BLOCK_CACHE_SIZE = 4;

/** Text as it is; the whole state of the checkpoint (`[]`); or one channel of it. */
export type FramePart = string | readonly [channel?: string];

/** The checkpoint whose state is the data, or stands in places of it. */
export interface StateData {
  readonly checkpointId: string;
  readonly parts?: readonly FramePart[];
}

/** A piece of a message: the data is all pieces of that message so far, put together by whoever reads it. */
export interface PieceData {
  /** The frame with its first piece. */
  readonly firstId: number;
  /** JSON text. */
  readonly piece: string;
}

/** JSON text, or what it is made of. */
export type FrameData = string | StateData | PieceData;

export interface Frame {
  readonly id: number;
  readonly event: string;
  readonly data: FrameData;
}

export type NextFrame =
  | { readonly kind: "frame"; readonly frame: Frame }
  /** Frames between the cursor and `firstAvailableId` are gone. */
  | { readonly kind: "gap"; readonly firstAvailableId: number }
  | { readonly kind: "none" };

interface BlockRow extends Record<string, SqlStorageValue> {
  run_id: string;
  first_id: number;
  last_id: number;
  bytes: number;
  frames: string;
}

/** PERSISTED. */
type PackedFrame =
  | [id: number, event: string, data: string]
  | [id: number, event: string, data: null, checkpointId: string, parts?: readonly FramePart[]]
  | [id: number, event: string, data: null, checkpointId: null, firstId: number, piece: string];

/** Frames of runs, stored. Live runs append through `LiveFrames`. */
export class FrameLog {
  readonly #sql: SqlExecutor;
  readonly #blocks = new Map<string, readonly Frame[]>();

  constructor(sql: SqlExecutor) {
    this.#sql = sql;
  }

  /**
   * One row, or several where the frames measure more than a block may; a single frame is never split. Returns the bytes
   * written.
   */
  writeBlock(runId: string, frames: readonly Frame[]): number {
    const first = frames[0];
    const last = frames.at(-1);
    if (first === undefined || last === undefined) return 0;
    const packed = JSON.stringify(frames.map(pack));
    const bytes = Buffer.byteLength(packed);
    if (bytes > FRAME_BLOCK_BYTES_MAX && frames.length > 1) {
      const middle = Math.ceil(frames.length / 2);
      return this.writeBlock(runId, frames.slice(0, middle)) + this.writeBlock(runId, frames.slice(middle));
    }
    this.#sql.exec(
      "INSERT INTO frame_blocks (run_id, first_id, v, last_id, bytes, frames) VALUES (?, ?, ?, ?, ?, ?)",
      runId,
      first.id,
      FRAME_ROW_VERSION,
      last.id,
      bytes,
      packed,
    );
    return bytes;
  }

  /** The stored frame after `afterId`. */
  next(runId: string, afterId: number): NextFrame {
    const known = this.#inCachedBlock(runId, afterId);
    if (known !== undefined) return { kind: "frame", frame: known };
    const [bounds] = this.#sql
      .exec<{ first_id: number; last_id: number }>(
        "SELECT first_id, last_id FROM frame_blocks WHERE run_id = ? AND last_id > ? ORDER BY first_id LIMIT 1",
        runId,
        afterId,
      )
      .toArray();
    if (bounds === undefined) return { kind: "none" };
    if (this.#isGap(runId, afterId, bounds.first_id)) return { kind: "gap", firstAvailableId: bounds.first_id };
    const frame = this.#block(runId, bounds.first_id).find((candidate) => candidate.id > afterId);
    return frame === undefined ? { kind: "none" } : { kind: "frame", frame };
  }

  /** Drops the oldest block of a run; returns its bytes, 0 when there was none. */
  dropOldest(runId: string): number {
    const [row] = this.#sql
      .exec<{ first_id: number; bytes: number }>(
        "SELECT first_id, bytes FROM frame_blocks WHERE run_id = ? ORDER BY first_id LIMIT 1",
        runId,
      )
      .toArray();
    if (row === undefined) return 0;
    this.#sql.exec("DELETE FROM frame_blocks WHERE run_id = ? AND first_id = ?", runId, row.first_id);
    this.#blocks.delete(`${runId}/${row.first_id}`);
    return row.bytes;
  }

  storedBytes(runId: string): number {
    return this.#sql
      .exec<{ bytes: number }>("SELECT coalesce(sum(bytes), 0) AS bytes FROM frame_blocks WHERE run_id = ?", runId)
      .one().bytes;
  }

  has(runId: string): boolean {
    return this.#sql.exec("SELECT 1 FROM frame_blocks WHERE run_id = ? LIMIT 1", runId).toArray().length > 0;
  }

  /** Removes every frame of the run. */
  expire(runId: string): void {
    this.#sql.exec("DELETE FROM frame_blocks WHERE run_id = ?", runId);
    this.#blocks.clear();
  }

  /** The oldest run that still has frames. */
  oldestRun(): string | undefined {
    return this.#runAfter("");
  }

  /** Every run that has frames, oldest first; each is looked up when it is asked for. */
  *runs(): Generator<string> {
    for (let run = this.#runAfter(""); run !== undefined; run = this.#runAfter(run)) yield run;
  }

  #runAfter(runId: string): string | undefined {
    const query = "SELECT run_id FROM frame_blocks WHERE run_id > ? ORDER BY run_id LIMIT 1";
    return rowsOf<{ run_id: string }>(this.#sql, query, runId)[0]?.run_id;
  }

  /** Frame 1 is the first of every run: a run whose first block starts later lost its beginning. */
  #isGap(runId: string, afterId: number, firstId: number): boolean {
    if (firstId === 1) return false;
    const earlier = this.#sql.exec(
      "SELECT 1 FROM frame_blocks WHERE run_id = ? AND first_id < ? LIMIT 1",
      runId,
      firstId,
    );
    return earlier.toArray().length === 0 && afterId < firstId - 1;
  }

  /**
   * Asks storage nothing, because a reader comes here for every token: three queries a frame were a third of a run's
   * CPU. Safe while blocks never change once written and leave the cache with their row.
   */
  #inCachedBlock(runId: string, afterId: number): Frame | undefined {
    for (const [key, frames] of this.#blocks) {
      const [first] = frames;
      const last = frames.at(-1);
      if (first === undefined || last === undefined || !key.startsWith(`${runId}/`)) continue;
      if (afterId < first.id || afterId >= last.id) continue;
      const beside = frames[afterId - first.id + 1];
      return beside?.id === afterId + 1 ? beside : frames.find((frame) => frame.id > afterId);
    }
    return undefined;
  }

  #block(runId: string, firstId: number): readonly Frame[] {
    const key = `${runId}/${firstId}`;
    const cached = this.#blocks.get(key);
    if (cached !== undefined) return cached;
    const [row] = this.#sql
      .exec<BlockRow>("SELECT * FROM frame_blocks WHERE run_id = ? AND first_id = ?", runId, firstId)
      .toArray();
    const frames = row === undefined ? [] : (JSON.parse(row.frames) as PackedFrame[]).map(unpack);
    if (this.#blocks.size >= BLOCK_CACHE_SIZE) this.#blocks.delete(this.#blocks.keys().next().value ?? "");
    this.#blocks.set(key, frames);
    return frames;
  }
}

function pack({ id, event, data }: Frame): PackedFrame {
  if (typeof data === "string") return [id, event, data];
  if ("piece" in data) return [id, event, null, null, data.firstId, data.piece];
  return data.parts === undefined
    ? [id, event, null, data.checkpointId]
    : [id, event, null, data.checkpointId, data.parts];
}

function unpack(packed: PackedFrame): Frame {
  const [id, event, data, checkpointId, fifth, piece] = packed;
  if (data !== null) return { id, event, data };
  if (typeof checkpointId !== "string") {
    return { id, event, data: { firstId: fifth, piece: piece ?? "" } };
  }
  return { id, event, data: fifth === undefined ? { checkpointId } : { checkpointId, parts: fifth } };
}
