/**
 * The event outbox: run events wait here, in the transaction of the fact they tell, until D1 has them.
 * Owns sequence numbers: gap-free and strictly increasing per thread (P1, P3). The newest block row outlives its events
 * and remembers the last number given, and what the newest run used so far: sums that grow with the answers they count cost
 * no row of their own. A block is rewritten by appends up to `BLOCK_BYTES_MAX`, so a commit costs one
 * row however many events it carries.
 * Does not know D1: `pending()` hands events out, `settle()` takes note that they arrived.
 */
import { Buffer } from "node:buffer";
import { addUsage, type CallerUsage } from "../../domain/run/run-usage.ts";
import type { RunEvent, RunEventDraft } from "../../protocol/run-events.ts";
import { rowsOf, type SqlExecutor } from "./metered-sql.ts";

/** Version of the row's shape. PERSISTED. */
const OUTBOX_ROW_VERSION = 1;

/** UTF-8. Rewriting a block on every append costs its size; past this a new one begins. Well under the 2 MB row. */
const BLOCK_BYTES_MAX = 128 * 1024;

/** A longer content is cut, so that a block with one event still fits a row and a D1 parameter. */
export const EVENT_CONTENT_CHARS_MAX = 200_000;

interface BlockRow extends Record<string, SqlStorageValue> {
  block: number;
  last_seq: number;
  bytes: number;
  thread_changes: number;
  events: string;
  /** A `RunUsage` as JSON. */
  usage: string | null;
}

/** PERSISTED. */
interface RunUsage {
  readonly run_id: string;
  readonly usage: readonly CallerUsage[];
}

export interface AppendOptions {
  readonly now: number;
  readonly threadChanged?: boolean;
  /** What the answers among the events used, for the run they belong to. */
  readonly used?: { readonly runId: string; readonly usage: readonly CallerUsage[] };
}

export interface PendingEvents {
  readonly events: readonly RunEvent[];
  /** How often the thread row changed since the last flush; 0 when it did not. */
  readonly threadChanges: number;
  /** What `settle` needs to know which rows the caller saw. */
  readonly upToBlock: number;
}

export class EventOutbox {
  readonly #sql: SqlExecutor;

  constructor(sql: SqlExecutor) {
    this.#sql = sql;
  }

  /**
   * Numbers and stores the drafts: one row, or one for each block they fill. Call inside the transaction of the fact.
   * Returns the last number given.
   */
  append(drafts: readonly RunEventDraft[], options: AppendOptions): number {
    let tail = withUsage(this.#tail(), options.used);
    const lastSeq = tail?.last_seq ?? 0;
    const createdAt = new Date(options.now).toISOString();
    const events = drafts.map((draft, index) =>
      JSON.stringify({ seq: lastSeq + index + 1, ...bounded(draft), created_at: createdAt }),
    );
    const [first = [], ...further] = toBlocks(events);
    tail = this.#extend(tail, first, options.threadChanged === true ? 1 : 0);
    for (const block of further) tail = this.#extend(tail, block, 0);
    return tail.last_seq;
  }

  /** Writes events behind the last block's, or as a new block when they would not fit it. One row. */
  #extend(tail: BlockRow | undefined, added: readonly string[], threadChanges: number): BlockRow {
    const held = tail === undefined ? "" : tail.events.slice(1, -1);
    const grown = measured(held === "" ? added : [held, ...added]);
    const fits = tail === undefined || added.length === 0 || held === "" || grown.bytes <= BLOCK_BYTES_MAX;
    const row: BlockRow = {
      block: (tail?.block ?? 1) + (fits ? 0 : 1),
      last_seq: (tail?.last_seq ?? 0) + added.length,
      thread_changes: (fits ? (tail?.thread_changes ?? 0) : 0) + threadChanges,
      usage: tail?.usage ?? null,
      ...(fits ? grown : measured(added)),
    };
    this.#write(row);
    return row;
  }

  lastSeq(): number {
    return this.#tail()?.last_seq ?? 0;
  }

  /** What the run used so far; nothing once a later run's answers are counted. */
  usageOf(runId: string): readonly CallerUsage[] {
    const usage = parseUsage(this.#tail());
    return usage?.run_id === runId ? usage.usage : [];
  }

  /** The oldest block that still waits, or `undefined` when D1 has everything. */
  pending(): PendingEvents | undefined {
    const query = "SELECT * FROM event_outbox WHERE bytes > 2 OR thread_changes > 0 ORDER BY block LIMIT 1";
    const [row] = rowsOf<BlockRow>(this.#sql, query);
    if (row === undefined) return undefined;
    return {
      events: JSON.parse(row.events) as RunEvent[],
      threadChanges: row.thread_changes,
      upToBlock: row.block,
    };
  }

  /** Events up to `seen`'s last are in D1: they leave the outbox. Events appended meanwhile stay. One row. */
  settle(seen: PendingEvents): void {
    const [row] = this.#sql.exec<BlockRow>("SELECT * FROM event_outbox WHERE block = ?", seen.upToBlock).toArray();
    if (row === undefined) return;
    const flushed = seen.events.at(-1)?.seq ?? 0;
    const left = (JSON.parse(row.events) as RunEvent[]).filter((event) => event.seq > flushed);
    if (left.length === 0 && this.#tail()?.block !== row.block) {
      this.#sql.exec("DELETE FROM event_outbox WHERE block = ?", row.block);
      return;
    }
    const threadChanges = row.thread_changes - seen.threadChanges;
    this.#write({ ...row, thread_changes: threadChanges, ...measured(left.map((event) => JSON.stringify(event))) });
  }

  #tail(): BlockRow | undefined {
    return rowsOf<BlockRow>(this.#sql, "SELECT * FROM event_outbox ORDER BY block DESC LIMIT 1")[0];
  }

  #write(row: BlockRow): void {
    this.#sql.exec(
      `INSERT INTO event_outbox (block, v, last_seq, bytes, thread_changes, events, usage) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (block) DO UPDATE SET last_seq = excluded.last_seq, bytes = excluded.bytes,
         thread_changes = excluded.thread_changes, events = excluded.events, usage = excluded.usage`,
      row.block,
      OUTBOX_ROW_VERSION,
      row.last_seq,
      row.bytes,
      row.thread_changes,
      row.events,
      row.usage,
    );
  }
}

const NO_BLOCK: BlockRow = { block: 1, last_seq: 0, bytes: 2, thread_changes: 0, events: "[]", usage: null };

function withUsage(tail: BlockRow | undefined, used: AppendOptions["used"]): BlockRow | undefined {
  if (used === undefined || used.usage.length === 0) return tail;
  const before = parseUsage(tail);
  const usage = addUsage(before?.run_id === used.runId ? before.usage : [], used.usage);
  return { ...(tail ?? NO_BLOCK), usage: JSON.stringify({ run_id: used.runId, usage } satisfies RunUsage) };
}

function parseUsage(row: BlockRow | undefined): RunUsage | undefined {
  return row === undefined || row.usage === null ? undefined : (JSON.parse(row.usage) as RunUsage);
}

/** Runs of encoded events that fit a block each; an event past the bound has one of its own. */
function toBlocks(events: readonly string[]): string[][] {
  const blocks: string[][] = [];
  let held = 0;
  for (const event of events) {
    const block = blocks.at(-1);
    const bytes = Buffer.byteLength(event);
    if (block === undefined || held + bytes + 2 > BLOCK_BYTES_MAX) {
      blocks.push([event]);
      held = bytes;
    } else {
      block.push(event);
      held += bytes + 1;
    }
  }
  return blocks;
}

/** A block's text of encoded events, and how many bytes it has as UTF-8. */
function measured(encoded: readonly string[]): Pick<BlockRow, "events" | "bytes"> {
  const events = `[${encoded.join(",")}]`;
  return { events, bytes: Buffer.byteLength(events) };
}

function bounded(draft: RunEventDraft): RunEventDraft {
  const content = JSON.stringify(draft.content) ?? "null";
  if (content.length <= EVENT_CONTENT_CHARS_MAX) return draft;
  return {
    ...draft,
    content: content.slice(0, EVENT_CONTENT_CHARS_MAX).toWellFormed(),
    metadata: { ...draft.metadata, content_truncated: true, original_chars: content.length },
  };
}
