/**
 * The rows of a workspace: committed files and directories in object SQLite.
 *
 * Owns the three tables and how a file is cut into rows. Does not own who may write or when (`open-sessions.ts`,
 * `staged-workspace.ts`): every method is synchronous and joins the caller's transaction.
 * Invariants: no row exceeds `CHUNK_BYTES_MAX` of body; content that is there already is not written again; an entry's
 * parent is a directory entry or the root; the head's sums equal the sums over entries.
 */
import { invariant } from "../../domain/shared/assert.ts";
import { ancestorPaths, baseName, parentPath, WORKSPACE_ROOT } from "../../domain/workspace/paths.ts";
import type { BaseEntry, WorkspaceBase } from "../../agent/tools/workspace-overlay.ts";
import type { SqlExecutor } from "../durable-storage/metered-sql.ts";

/** A row takes 2 MB in production (2.2 MB failed, 1.9 MB passed); the rest of the row is at most 3 KB. */
export const CHUNK_BYTES_MAX = 1_800_000;

export interface WorkspaceHead {
  /** The number of the last commit that changed something. */
  readonly version: number;
  readonly bytes: number;
  readonly entries: number;
}

/** A file to be saved, or its new end. */
export interface FileToSave {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly modifiedAt: number;
  readonly version: number;
}

/** What one save or removal did to the sums. `changed` is false when nothing had to be written. */
export interface RowsDelta {
  readonly changed: boolean;
  readonly bytes: number;
  readonly entries: number;
}

type EntryRow = { parent: string; name: string; kind: string; size: number; modified_at: number; version: number };

const ENTRY_COLUMNS = "parent, name, kind, size, modified_at, version";
const UNCHANGED: RowsDelta = { changed: false, bytes: 0, entries: 0 };
const ROOT_ENTRY: BaseEntry = { path: WORKSPACE_ROOT, kind: "directory", size: 0, modifiedAt: 0, version: 0 };

export class WorkspaceRows implements WorkspaceBase {
  readonly #sql: SqlExecutor;

  constructor(sql: SqlExecutor) {
    this.#sql = sql;
  }

  head(): WorkspaceHead {
    const rows = this.#sql.exec<{ version: number; bytes: number; entries: number }>(
      "SELECT version, bytes, entries FROM workspace_head WHERE id = 1",
    );
    return rows.toArray()[0] ?? { version: 0, bytes: 0, entries: 0 };
  }

  saveHead({ version, bytes, entries }: WorkspaceHead): void {
    this.#sql.exec(
      `INSERT INTO workspace_head (id, version, bytes, entries) VALUES (1, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET version = excluded.version, bytes = excluded.bytes, entries = excluded.entries`,
      version,
      bytes,
      entries,
    );
  }

  find(path: string): BaseEntry | undefined {
    if (path === WORKSPACE_ROOT) return ROOT_ENTRY;
    const rows = this.#sql.exec<EntryRow>(
      `SELECT ${ENTRY_COLUMNS} FROM workspace_entries WHERE parent = ? AND name = ?`,
      parentPath(path),
      baseName(path),
    );
    return rows.toArray().map(toEntry)[0];
  }

  children(directory: string): readonly BaseEntry[] {
    const rows = this.#sql.exec<EntryRow>(
      `SELECT ${ENTRY_COLUMNS} FROM workspace_entries WHERE parent = ? ORDER BY name`,
      directory,
    );
    return rows.toArray().map(toEntry);
  }

  descendants(directory: string): readonly BaseEntry[] {
    // "0" follows "/": the half-open range holds exactly the directories below.
    const rows = this.#sql.exec<EntryRow>(
      `SELECT ${ENTRY_COLUMNS} FROM workspace_entries WHERE parent = ?1
       UNION ALL SELECT ${ENTRY_COLUMNS} FROM workspace_entries WHERE parent >= ?1 || '/' AND parent < ?1 || '0'`,
      directory,
    );
    return rows.toArray().map(toEntry);
  }

  readBytes(path: string): Uint8Array {
    const entry = this.find(path);
    invariant(entry?.kind === "file", `${path} is a file`);
    const first = this.#body(path);
    if (first.byteLength === entry.size) return first;
    const whole = new Uint8Array(entry.size);
    whole.set(first);
    let at = first.byteLength;
    for (const chunk of this.#chunks(path)) {
      whole.set(chunk, at);
      at += chunk.byteLength;
    }
    invariant(at === entry.size, `${path} has all its chunks`);
    return whole;
  }

  /** Creates or replaces; writes only the rows whose bytes differ. */
  saveFile(file: FileToSave): RowsDelta {
    const before = this.find(file.path);
    invariant(before?.kind !== "directory", `${file.path} is no directory`);
    const bodies = cut(file.bytes);
    const bodyDiffers = before === undefined || !isEqual(this.#body(file.path), bodies[0]!);
    const chunksDiffer = this.#saveChunks(file.path, bodies.slice(1), before?.size ?? 0);
    if (!bodyDiffers && !chunksDiffer && before.size === file.bytes.byteLength) return UNCHANGED;
    this.#saveEntry(file, bodyDiffers ? bodies[0]! : undefined);
    const added = before === undefined ? 1 : 0;
    return { changed: true, bytes: file.bytes.byteLength - (before?.size ?? 0), entries: added };
  }

  /** Creates the directory and its missing parents. */
  saveDirectory(path: string, at: { modifiedAt: number; version: number }): RowsDelta {
    let entries = 0;
    for (const directory of [...ancestorPaths(path), path]) {
      const existing = this.find(directory);
      invariant(existing?.kind !== "file", `${directory} is no file`);
      if (existing !== undefined) continue;
      this.#sql.exec(
        `INSERT INTO workspace_entries (${ENTRY_COLUMNS}) VALUES (?, ?, 'directory', 0, ?, ?)`,
        parentPath(directory),
        baseName(directory),
        at.modifiedAt,
        at.version,
      );
      entries += 1;
    }
    return { changed: entries > 0, bytes: 0, entries };
  }

  /** A directory that another commit filled meanwhile stays; a missing entry is no fault. */
  removeEntry(path: string): RowsDelta {
    const entry = this.find(path);
    if (entry === undefined) return UNCHANGED;
    if (entry.kind === "directory" && this.children(path).length > 0) return UNCHANGED;
    const [parent, name] = [parentPath(path), baseName(path)];
    this.#sql.exec("DELETE FROM workspace_entries WHERE parent = ? AND name = ?", parent, name);
    if (entry.size > CHUNK_BYTES_MAX) this.#sql.exec("DELETE FROM workspace_chunks WHERE path = ?", path);
    return { changed: true, bytes: -entry.size, entries: -1 };
  }

  #saveEntry(file: FileToSave, body: Uint8Array | undefined): void {
    const [parent, name] = [parentPath(file.path), baseName(file.path)];
    const columns = [file.bytes.byteLength, file.modifiedAt, file.version];
    if (body === undefined) {
      const set = "size = ?, modified_at = ?, version = ?";
      this.#sql.exec(`UPDATE workspace_entries SET ${set} WHERE parent = ? AND name = ?`, ...columns, parent, name);
      return;
    }
    this.#sql.exec(
      `INSERT INTO workspace_entries (${ENTRY_COLUMNS}, body) VALUES (?, ?, 'file', ?, ?, ?, ?)
       ON CONFLICT (parent, name) DO UPDATE SET size = excluded.size, modified_at = excluded.modified_at,
         version = excluded.version, body = excluded.body`,
      parent,
      name,
      ...columns,
      body,
    );
  }

  /** True when any chunk was written or removed. */
  #saveChunks(path: string, chunks: readonly Uint8Array[], sizeBefore: number): boolean {
    const before = sizeBefore > CHUNK_BYTES_MAX ? this.#chunks(path) : [];
    let changed = false;
    for (const [index, chunk] of chunks.entries()) {
      const existing = before[index];
      if (existing !== undefined && isEqual(existing, chunk)) continue;
      this.#sql.exec(
        `INSERT INTO workspace_chunks (path, chunk, body) VALUES (?, ?, ?)
         ON CONFLICT (path, chunk) DO UPDATE SET body = excluded.body`,
        path,
        index + 1,
        chunk,
      );
      changed = true;
    }
    if (before.length <= chunks.length) return changed;
    this.#sql.exec("DELETE FROM workspace_chunks WHERE path = ? AND chunk > ?", path, chunks.length);
    return true;
  }

  #body(path: string): Uint8Array {
    const rows = this.#sql.exec<{ body: ArrayBuffer }>(
      "SELECT body FROM workspace_entries WHERE parent = ? AND name = ?",
      parentPath(path),
      baseName(path),
    );
    return new Uint8Array(rows.one().body);
  }

  #chunks(path: string): readonly Uint8Array[] {
    const rows = this.#sql.exec<{ body: ArrayBuffer }>(
      "SELECT body FROM workspace_chunks WHERE path = ? ORDER BY chunk",
      path,
    );
    return rows.toArray().map((row) => new Uint8Array(row.body));
  }
}

function toEntry(row: EntryRow): BaseEntry {
  const { size, version } = row;
  const kind = row.kind === "directory" ? "directory" : "file";
  return { path: `${row.parent}/${row.name}`, kind, size, modifiedAt: row.modified_at, version };
}

/** At least one part; an empty file has an empty body. */
function cut(bytes: Uint8Array): readonly Uint8Array[] {
  const parts: Uint8Array[] = [bytes.subarray(0, CHUNK_BYTES_MAX)];
  for (let at = CHUNK_BYTES_MAX; at < bytes.byteLength; at += CHUNK_BYTES_MAX) {
    parts.push(bytes.subarray(at, at + CHUNK_BYTES_MAX));
  }
  return parts;
}

function isEqual(first: Uint8Array, second: Uint8Array): boolean {
  if (first.byteLength !== second.byteLength) return false;
  for (let at = 0; at < first.byteLength; at += 1) if (first[at] !== second[at]) return false;
  return true;
}
