/**
 * A thread's workspace: committed files, and the operations of the HTTP API on them.
 *
 * Owns the numbering of commits and what HTTP and batch submits may ask. Each operation is a session of its own that
 * commits at once, so it meets the same limits and conflicts as a tool call. All is synchronous: the writes of one
 * operation share the object's implicit transaction.
 */
import type { WorkspaceOverlay } from "../../agent/tools/workspace-overlay.ts";
import type { WorkspaceEntry, WorkspaceFile, WorkspaceRefusal, WorkspaceSession } from "../../agent/tools/workspace.ts";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import type { SqlExecutor } from "../durable-storage/metered-sql.ts";
import { OpenSessions } from "./open-sessions.ts";
import { applyChanges } from "./workspace-commit.ts";
import { WorkspaceRows } from "./workspace-rows.ts";

/** Contracts, "Batches": what a submit may snapshot for its items. */
export const SNAPSHOT_FILES_MAX = 100;
export const SNAPSHOT_BYTES_MAX = 8 * 1_024 * 1_024;

export type SnapshotRefusal =
  | WorkspaceRefusal
  | { readonly reason: "too_many_files"; readonly count: number; readonly limit: number }
  | { readonly reason: "snapshot_too_large"; readonly bytes: number; readonly limit: number };

export interface StoredFile {
  readonly entry: WorkspaceEntry;
  readonly created: boolean;
}

export type WorkspaceContent =
  | { readonly kind: "file"; readonly entry: WorkspaceEntry; readonly bytes: Uint8Array }
  | { readonly kind: "directory"; readonly path: string; readonly entries: readonly WorkspaceEntry[] };

export class DurableWorkspace {
  readonly sessions: OpenSessions;
  readonly #rows: WorkspaceRows;
  /** Numbers are never used twice in one life of the object, not even when a transaction rolled back. */
  #lastVersion = 0;

  constructor(parts: { sql: SqlExecutor; now: () => number }) {
    this.#rows = new WorkspaceRows(parts.sql);
    this.sessions = new OpenSessions(this.#rows, parts.now);
  }

  put(path: string, bytes: Uint8Array): Result<StoredFile, WorkspaceRefusal> {
    return this.#committing((session) => {
      const before = session.stat(path);
      const written = session.write(path, bytes);
      if (!written.ok) return written;
      const after = session.stat(path);
      return after.ok ? ok({ entry: after.value, created: !before.ok }) : after;
    });
  }

  /** A file with its bytes, or a directory with its direct children. */
  get(path: string): Result<WorkspaceContent, WorkspaceRefusal> {
    return this.#looking((session) => {
      const found = session.stat(path);
      if (!found.ok) return found;
      const entry = found.value;
      if (entry.kind === "file") {
        const bytes = session.read(path);
        return bytes.ok ? ok({ kind: "file", entry, bytes: bytes.value }) : bytes;
      }
      const entries = session.list(path);
      return entries.ok ? ok({ kind: "directory", path: entry.path, entries: entries.value }) : entries;
    });
  }

  list(path: string): Result<readonly WorkspaceEntry[], WorkspaceRefusal> {
    return this.#looking((session) => session.list(path));
  }

  delete(path: string, options: { recursive: boolean }): Result<void, WorkspaceRefusal> {
    return this.#committing((session) => session.remove(path, options));
  }

  /** The committed bytes of the named files, for batch items. A path named twice counts once. */
  snapshotFiles(paths: readonly string[]): Result<readonly WorkspaceFile[], SnapshotRefusal> {
    if (paths.length > SNAPSHOT_FILES_MAX) {
      return err({ reason: "too_many_files", count: paths.length, limit: SNAPSHOT_FILES_MAX });
    }
    return this.#looking((session) => readAll(session, paths));
  }

  /** Applies a session's changes in the caller's transaction. `changed` is false when storage already said so. */
  commit(changes: WorkspaceOverlay["changes"]): { readonly changed: boolean; readonly version: number } {
    const version = Math.max(this.#lastVersion, this.#rows.head().version) + 1;
    this.#lastVersion = version;
    return { changed: applyChanges(this.#rows, changes, version), version };
  }

  /** The last commit that storage holds. */
  committedVersion(): number {
    return this.#rows.head().version;
  }

  #committing<T>(work: (session: WorkspaceSession) => Result<T, WorkspaceRefusal>): Result<T, WorkspaceRefusal> {
    const overlay = this.sessions.open();
    try {
      const done = work(overlay);
      if (done.ok) this.commit(overlay.changes);
      return done;
    } finally {
      this.sessions.close(overlay);
    }
  }

  #looking<T>(work: (session: WorkspaceSession) => T): T {
    const overlay = this.sessions.open();
    try {
      return work(overlay);
    } finally {
      this.sessions.close(overlay);
    }
  }
}

/** Sizes are summed before bytes are read, so that a refused snapshot loads nothing. */
function readAll(
  session: WorkspaceSession,
  paths: readonly string[],
): Result<readonly WorkspaceFile[], SnapshotRefusal> {
  const entries = new Map<string, WorkspaceEntry>();
  for (const path of paths) {
    const found = session.stat(path);
    if (!found.ok) return found;
    if (found.value.kind === "directory") return err({ reason: "not_a_file", path: found.value.path });
    entries.set(found.value.path, found.value);
  }
  const bytes = [...entries.values()].reduce((total, entry) => total + entry.size, 0);
  if (bytes > SNAPSHOT_BYTES_MAX) return err({ reason: "snapshot_too_large", bytes, limit: SNAPSHOT_BYTES_MAX });
  const files: WorkspaceFile[] = [];
  for (const path of entries.keys()) {
    const read = session.read(path);
    if (!read.ok) return read;
    files.push({ path, bytes: read.value });
  }
  return ok(files);
}
