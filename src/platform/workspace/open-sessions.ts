/**
 * The sessions of a thread that are under way, and what keeps them from hurting each other.
 *
 * Owns admission of staged changes: conflicts between sessions, and the bounds over committed and staged bytes
 * together. Invariants: a commit can never be refused, because everything was checked when it was staged; of two
 * sessions that change one path, neither may have read it before replacing it (appends add up, blind overwrites are
 * "the last commit wins"); committed plus staged growth never exceeds the workspace's limits, in whatever order the
 * sessions commit.
 */
import { FILE_BYTES_MAX } from "../../domain/workspace/paths.ts";
import { WorkspaceOverlay, type ProposedChange, type StagedChange } from "../../agent/tools/workspace-overlay.ts";
import type { WorkspaceRefusal } from "../../agent/tools/workspace.ts";
import { ancestorPaths, isBelow } from "../../domain/workspace/paths.ts";
import type { WorkspaceRows } from "./workspace-rows.ts";

/** 100 MiB a thread (contracts, "Workspace"). */
export const WORKSPACE_BYTES_MAX = 100 * 1_024 * 1_024;
/** Files and directories; bounds a recursive listing, which is read whole into memory. */
export const WORKSPACE_ENTRIES_MAX = 10_000;
/** Staged bytes of all calls live in the object's memory: two full files and some, of an isolate's 128 MB. */
export const STAGED_BYTES_MAX = 24 * 1_024 * 1_024;

type Changes = ReadonlyMap<string, Pick<StagedChange, "kind"> & { readonly size: number }>;

export class OpenSessions {
  readonly #rows: WorkspaceRows;
  readonly #now: () => number;
  readonly #open = new Set<WorkspaceOverlay>();

  constructor(rows: WorkspaceRows, now: () => number) {
    this.#rows = rows;
    this.#now = now;
  }

  open(): WorkspaceOverlay {
    const overlay: WorkspaceOverlay = new WorkspaceOverlay({
      base: this.#rows,
      rules: (proposed) => this.#refusal(overlay, proposed),
      now: this.#now,
    });
    this.#open.add(overlay);
    return overlay;
  }

  /** Its changes no longer count, and it stages nothing any more. */
  close(overlay: WorkspaceOverlay): void {
    overlay.close();
    this.#open.delete(overlay);
  }

  /** Counts a closed session again, because the commit that made its changes part of storage was rolled back. */
  restore(overlay: WorkspaceOverlay): void {
    this.#open.add(overlay);
  }

  #refusal(own: WorkspaceOverlay, proposed: readonly ProposedChange[]): WorkspaceRefusal | undefined {
    const others = [...this.#open].filter((overlay) => overlay !== own && overlay.changes.size > 0);
    for (const change of proposed) {
      if (others.some((other) => clashes(other.changes, change, this.#replacesDirectory(change)))) {
        return { reason: "busy", path: change.path };
      }
      const bytes = this.#sizeTogether(others, change);
      if (bytes > FILE_BYTES_MAX) {
        return { reason: "file_too_large", path: change.path, bytes, limit: FILE_BYTES_MAX };
      }
    }
    return this.#overBounds([withProposed(own, proposed), ...others.map((other) => withProposed(other, []))]);
  }

  /** A file put where a committed directory was: whatever others stage below would be lost. */
  #replacesDirectory(change: ProposedChange): boolean {
    if (change.kind === "directory" || change.kind === "removed") return false;
    return this.#rows.find(change.path)?.kind === "directory";
  }

  /** The largest the file can become when every session that adds to it commits. */
  #sizeTogether(others: readonly WorkspaceOverlay[], change: ProposedChange): number {
    if (change.kind === "directory" || change.kind === "removed") return 0;
    const staged = others.map((other) => other.changes.get(change.path)).filter((theirs) => theirs !== undefined);
    const all = [change, ...staged.map(sized)];
    const committed = this.#rows.find(change.path)?.size ?? 0;
    const whole = Math.max(...all.map(({ kind, size }) => (kind === "append" ? committed : size)));
    return all.reduce((sum, { kind, size }) => (kind === "append" ? sum + size : sum), whole);
  }

  #overBounds(sessions: readonly Changes[]): WorkspaceRefusal | undefined {
    const stagedBytes = sum(sessions, (_path, change) => change.size);
    if (stagedBytes > STAGED_BYTES_MAX) {
      return { reason: "staging_full", bytes: stagedBytes, limit: STAGED_BYTES_MAX };
    }
    const head = this.#rows.head();
    if (head.bytes + stagedBytes > WORKSPACE_BYTES_MAX) {
      // Only near the limit is it worth asking what each change replaces.
      const bytes = head.bytes + sum(sessions, (path, change) => this.#growth(path, change));
      if (bytes > WORKSPACE_BYTES_MAX) return { reason: "workspace_full", bytes, limit: WORKSPACE_BYTES_MAX };
    }
    const stagedEntries = sum(sessions, (_path, change) => (change.kind === "removed" ? 0 : 1));
    if (head.entries + stagedEntries > WORKSPACE_ENTRIES_MAX) {
      const entries = head.entries + sum(sessions, (path, change) => this.#added(path, change));
      if (entries > WORKSPACE_ENTRIES_MAX) return { reason: "too_many_entries", limit: WORKSPACE_ENTRIES_MAX };
    }
    return undefined;
  }

  #growth(path: string, { kind, size }: { kind: StagedChange["kind"]; size: number }): number {
    return kind === "append" ? size : Math.max(0, size - (this.#rows.find(path)?.size ?? 0));
  }

  #added(path: string, { kind }: { kind: StagedChange["kind"] }): number {
    return kind !== "removed" && this.#rows.find(path) === undefined ? 1 : 0;
  }
}

/** Whether a session's staged changes rule out one that another session proposes. */
function clashes(
  theirs: ReadonlyMap<string, StagedChange>,
  change: ProposedChange,
  replacesDirectory: boolean,
): boolean {
  const same = theirs.get(change.path);
  if (same !== undefined && excludes(same, change)) return true;
  if (change.kind === "removed") return false;
  if (ancestorPaths(change.path).some((ancestor) => holdsFile(theirs.get(ancestor)))) return true;
  if (!replacesDirectory) return false;
  return [...theirs].some(([path, staged]) => staged.kind !== "removed" && isBelow(path, change.path));
}

function excludes(theirs: StagedChange, change: ProposedChange): boolean {
  if (theirs.kind === "directory" || change.kind === "directory") return theirs.kind !== change.kind;
  return change.exclusive || ("exclusive" in theirs && theirs.exclusive);
}

function holdsFile(change: StagedChange | undefined): boolean {
  return change?.kind === "file" || change?.kind === "append";
}

function withProposed(overlay: WorkspaceOverlay, proposed: readonly ProposedChange[]): Changes {
  const changes = new Map([...overlay.changes].map(([path, change]) => [path, sized(change)]));
  for (const { path, kind, size } of proposed) changes.set(path, { kind, size });
  return changes;
}

function sized(change: StagedChange): { kind: StagedChange["kind"]; size: number } {
  return { kind: change.kind, size: "content" in change ? change.content.size : 0 };
}

function sum(
  sessions: readonly Changes[],
  of: (path: string, change: { kind: StagedChange["kind"]; size: number }) => number,
): number {
  let total = 0;
  for (const changes of sessions) for (const [path, change] of changes) total += of(path, change);
  return total;
}
