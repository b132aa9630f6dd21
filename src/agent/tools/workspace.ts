/**
 * What a tool may do with files: the agent's port onto a workspace. Adapters live in `platform/workspace`.
 * A session is one tool call's view: reads see the committed workspace plus the session's own writes; nobody else sees
 * the writes until the call's result commits (architecture section 4, Commits). Paths are absolute under `/workspace`.
 */
import type { Result } from "../../domain/shared/result.ts";

export interface WorkspaceEntry {
  readonly path: string;
  readonly kind: "file" | "directory";
  /** Bytes; 0 for a directory. */
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly modifiedAt: number;
}

export interface WorkspaceFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

export type WorkspaceRefusal =
  | { readonly reason: "not_found"; readonly path: string }
  | { readonly reason: "not_a_file"; readonly path: string }
  | { readonly reason: "not_a_directory"; readonly path: string }
  | { readonly reason: "not_empty"; readonly path: string }
  | { readonly reason: "read_only"; readonly path: string }
  /** Outside `/workspace`, or not a legal path at all. */
  | { readonly reason: "path_refused"; readonly path: string; readonly why: string }
  | { readonly reason: "file_too_large"; readonly path: string; readonly bytes: number; readonly limit: number }
  | { readonly reason: "workspace_full"; readonly bytes: number; readonly limit: number }
  | { readonly reason: "too_many_entries"; readonly limit: number }
  /** What a batch item may return under `outputs/`. */
  | { readonly reason: "outputs_full"; readonly bytes: number; readonly limit: number }
  /** Writes of calls still under way exceed what may wait in memory. */
  | { readonly reason: "staging_full"; readonly bytes: number; readonly limit: number }
  /** Another call, still under way, has staged a change this one cannot be combined with. */
  | { readonly reason: "busy"; readonly path: string }
  /** The file was committed by another call after this session read it: writing now would lose that change. */
  | { readonly reason: "changed"; readonly path: string };

/** Synchronous on purpose: object SQLite is, and a staged write must not interleave with its commit. */
export interface WorkspaceSession {
  stat(path: string): Result<WorkspaceEntry, WorkspaceRefusal>;
  /** Direct children, ordered by path. */
  list(path: string): Result<readonly WorkspaceEntry[], WorkspaceRefusal>;
  /** Every file below `path`, ordered by path. */
  walk(path: string): Result<readonly WorkspaceEntry[], WorkspaceRefusal>;
  read(path: string): Result<Uint8Array, WorkspaceRefusal>;
  /** Creates missing parent directories. */
  write(path: string, bytes: Uint8Array): Result<void, WorkspaceRefusal>;
  /** Adds to the end, creating the file if missing. Recorded as an addition: appends of parallel calls all survive. */
  append(path: string, bytes: Uint8Array): Result<void, WorkspaceRefusal>;
  /** Creates missing parents; a directory that exists is no refusal. */
  makeDirectory(path: string): Result<void, WorkspaceRefusal>;
  remove(path: string, options: { recursive: boolean }): Result<void, WorkspaceRefusal>;
}

/** Hands out sessions and settles them. One session per tool-call id; `commit` runs inside the caller's transaction. */
export interface WorkspaceStaging {
  open(toolCallId: string): WorkspaceSession;
  /** Applies the staged writes of the call. Synchronous, no await, idempotent; unknown ids are a no-op. */
  commit(toolCallId: string): void;
  discard(toolCallId: string): void;
}
