/**
 * The stored rows that make a thread's state and files, read page by page and stored again under another thread's id.
 *
 * Owns which tables and columns a copy has. Rows are taken as they are: ids of checkpoints and tasks stay, so that writes
 * still belong to their tasks and a pending interrupt can be answered. Runs, frames, events, keys and batches are not
 * copied. Synchronous: the caller composes calls into one transaction.
 */
import { invariant } from "../../domain/shared/assert.ts";
import type { CopiedRows, CopiedValue, CopyCursor } from "../../protocol/thread-copy.ts";
import type { SqlExecutor } from "./metered-sql.ts";

/** Two pages are in a Worker's memory at a time, and one row of 2 MB may pass the bound; RPC takes 32 MiB. */
export const COPY_PAGE_BYTES_MAX = 4 * 1_048_576;

/** Beside its columns' bytes; keeps pages of small rows bounded in rows. */
const ROW_OVERHEAD = 100;

interface CopiedTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** The primary key, without the thread's id. */
  readonly key: readonly string[];
  readonly byThread: boolean;
}

const CHECKPOINT = ["checkpoint_ns", "checkpoint_id"];

const COPIED_TABLES: readonly CopiedTable[] = [
  {
    name: "checkpoints",
    columns: [...CHECKPOINT, "parent_id", "value_holders", "chunks", "body", "late_position"],
    key: CHECKPOINT,
    byThread: true,
  },
  {
    name: "checkpoint_writes",
    columns: [...CHECKPOINT, "task_id", "chunks", "body"],
    key: [...CHECKPOINT, "task_id"],
    byThread: true,
  },
  {
    name: "checkpoint_chunks",
    columns: [...CHECKPOINT, "task_id", "chunk", "body"],
    key: [...CHECKPOINT, "task_id", "chunk"],
    byThread: true,
  },
  // A waiting step's: which children it started, and which of its tools.
  {
    name: "delegations",
    columns: ["task_id", "v", "run_id", "subagent_type", "checkpoint_ns", "steps", "cancelled"],
    key: ["task_id"],
    byThread: false,
  },
  {
    name: "tool_starts",
    columns: ["tool_call_id", "v", "checkpoint_ns", "executions"],
    key: ["tool_call_id"],
    byThread: false,
  },
  {
    name: "workspace_entries",
    columns: ["parent", "name", "kind", "size", "modified_at", "version", "body"],
    key: ["parent", "name"],
    byThread: false,
  },
  { name: "workspace_chunks", columns: ["path", "chunk", "body"], key: ["path", "chunk"], byThread: false },
  { name: "workspace_head", columns: ["id", "version", "bytes", "entries"], key: ["id"], byThread: false },
];

/** How much a copy moves, without reading the bodies. */
export function copiedBytes(sql: SqlExecutor, threadId: string): number {
  let bytes = 0;
  for (const { name, columns, byThread } of COPIED_TABLES) {
    const body = columns.includes("body") ? "coalesce(length(body), 0)" : "0";
    const query = `SELECT coalesce(sum(${body} + ${ROW_OVERHEAD}), 0) AS bytes FROM ${name} WHERE ${ofThread(byThread)}`;
    bytes += sql.exec<{ bytes: number }>(query, ...(byThread ? [threadId] : [])).one().bytes;
  }
  return bytes;
}

/** The rows from `cursor` on, as far as a page goes; without `next` on the last page. */
export function readCopyPage(
  sql: SqlExecutor,
  threadId: string,
  cursor: CopyCursor = { table: 0, after: [] },
): { tables: CopiedRows[]; next?: CopyCursor } {
  const tables: CopiedRows[] = [];
  let bytes = 0;
  let after = cursor.after;
  for (let table = cursor.table; table < COPIED_TABLES.length; table += 1) {
    const rows: CopiedValue[][] = [];
    for (const row of rowsAfter(sql, threadId, { table, after })) {
      rows.push(row);
      bytes += bytesOf(row);
      if (bytes >= COPY_PAGE_BYTES_MAX) break;
    }
    if (rows.length > 0) tables.push({ table, rows });
    if (bytes >= COPY_PAGE_BYTES_MAX) return { tables, next: { table, after: keyOf(table, rows.at(-1)!) } };
    after = [];
  }
  return { tables };
}

export function saveCopiedRows(sql: SqlExecutor, threadId: string, copied: readonly CopiedRows[]): void {
  for (const { table, rows } of copied) {
    const { name, columns, byThread } = tableAt(table);
    const own = byThread ? [threadId] : [];
    const all = byThread ? ["thread_id", ...columns] : columns;
    const insert = `INSERT INTO ${name} (${all.join(", ")}) VALUES (${all.map(() => "?").join(", ")})`;
    for (const row of rows) sql.exec(insert, ...own, ...row);
  }
}

/** What a copy that never ended left behind. No row is written where there is nothing. */
export function clearCopiedRows(sql: SqlExecutor): void {
  for (const { name } of COPIED_TABLES) sql.exec(`DELETE FROM ${name}`);
}

function rowsAfter(sql: SqlExecutor, threadId: string, { table, after }: CopyCursor): IterableIterator<CopiedValue[]> {
  const { name, columns, key, byThread } = tableAt(table);
  const keyset = after.length === 0 ? "" : ` AND (${key.join(", ")}) > (${key.map(() => "?").join(", ")})`;
  const query = `SELECT ${columns.join(", ")} FROM ${name} WHERE ${ofThread(byThread)}${keyset} ORDER BY ${key.join(", ")}`;
  return sql.exec(query, ...(byThread ? [threadId] : []), ...after).raw<CopiedValue[]>();
}

function keyOf(table: number, row: readonly CopiedValue[]): (string | number)[] {
  const { columns, key } = tableAt(table);
  return key.map((column) => row[columns.indexOf(column)] as string | number);
}

function tableAt(table: number): CopiedTable {
  const found = COPIED_TABLES[table];
  invariant(found !== undefined, `a copy names table ${table}, which has no rows to copy`);
  return found;
}

/** An object holds one thread; other ids in these tables are what its runs keep for a rollback. */
function ofThread(byThread: boolean): string {
  return byThread ? "thread_id = ?" : "true";
}

function bytesOf(row: readonly CopiedValue[]): number {
  return row.reduce<number>((bytes, value) => bytes + lengthOf(value), ROW_OVERHEAD);
}

function lengthOf(value: CopiedValue): number {
  if (typeof value === "string") return value.length;
  return value instanceof ArrayBuffer ? value.byteLength : 0;
}
