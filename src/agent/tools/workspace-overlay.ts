/**
 * A workspace session: one layer of staged changes over files that are already there.
 *
 * Owns what a session sees (base plus its own changes) and what it may stage. Does not own where the base lives, who
 * else writes, or how changes are made durable: `WorkspaceBase` and `StagingRules` are those ports. Serves the staged
 * thread workspace and the scratch of a batch item alike.
 * Invariants: nothing here writes to the base; a refused operation stages nothing; every staged entry's parents are
 * directories of the base or staged themselves; a change is `exclusive` when the session read the file's committed
 * bytes before replacing it, and then those bytes were still the committed ones when it was staged.
 */
import { err, ok, type Result } from "../../domain/shared/result.ts";
import {
  ancestorPaths,
  isBelow,
  FILE_BYTES_MAX,
  normalizeWorkspacePath,
  parentPath,
  WORKSPACE_ROOT,
} from "../../domain/workspace/paths.ts";
import { ByteParts, concatBytes } from "./byte-parts.ts";
import type { WorkspaceEntry, WorkspaceRefusal, WorkspaceSession } from "./workspace.ts";

export interface BaseEntry extends WorkspaceEntry {
  /** Changes whenever the entry's content does. */
  readonly version: number;
}

/** What lies under a session. Answers reflect commits made meanwhile; the root always exists. */
export interface WorkspaceBase {
  find(path: string): BaseEntry | undefined;
  /** Direct children. */
  children(directory: string): readonly BaseEntry[];
  /** Everything below, files and directories. */
  descendants(directory: string): readonly BaseEntry[];
  /** Of a file that `find` answered. */
  readBytes(path: string): Uint8Array;
}

export type StagedChange =
  | { readonly kind: "file"; readonly content: ByteParts; readonly exclusive: boolean; readonly modifiedAt: number }
  | { readonly kind: "append"; readonly content: ByteParts; readonly modifiedAt: number }
  | { readonly kind: "directory"; readonly modifiedAt: number }
  | { readonly kind: "removed"; readonly exclusive: boolean };

/** Asked before anything is staged; `size` counts the bytes the change would hold then. Undefined admits. */
export type ProposedChange = { readonly path: string; readonly size: number } & Pick<StagedChange, "kind"> & {
    readonly exclusive: boolean;
  };
export type StagingRules = (proposed: readonly ProposedChange[]) => WorkspaceRefusal | undefined;

export interface OverlayParts {
  readonly base: WorkspaceBase;
  readonly rules: StagingRules;
  readonly now: () => number;
}

type Refusal = { readonly ok: false; readonly error: WorkspaceRefusal };

export class WorkspaceOverlay implements WorkspaceSession {
  readonly #base: WorkspaceBase;
  readonly #rules: StagingRules;
  readonly #now: () => number;
  readonly #changes = new Map<string, StagedChange>();
  /** Versions of the committed files whose bytes this session saw. */
  readonly #versionsRead = new Map<string, number>();
  #closed = false;

  constructor(parts: OverlayParts) {
    this.#base = parts.base;
    this.#rules = parts.rules;
    this.#now = parts.now;
  }

  get changes(): ReadonlyMap<string, StagedChange> {
    return this.#changes;
  }

  /** After its call settled nothing may be staged any more: it would never commit, or commit with another call. */
  close(): void {
    this.#closed = true;
  }

  stat(path: string): Result<WorkspaceEntry, WorkspaceRefusal> {
    const at = normalizeWorkspacePath(path);
    if (!at.ok) return at;
    const entry = this.#find(at.value);
    return entry === undefined ? err({ reason: "not_found", path: at.value }) : ok(entry);
  }

  list(path: string): Result<readonly WorkspaceEntry[], WorkspaceRefusal> {
    const directory = this.#directory(path);
    if (!directory.ok) return directory;
    const parent = directory.value;
    return ok(this.#visible(this.#base.children(parent), (staged) => parentPath(staged) === parent));
  }

  walk(path: string): Result<readonly WorkspaceEntry[], WorkspaceRefusal> {
    const directory = this.#directory(path);
    if (!directory.ok) return directory;
    return ok(this.#below(directory.value).filter((entry) => entry.kind === "file"));
  }

  read(path: string): Result<Uint8Array, WorkspaceRefusal> {
    const found = this.stat(path);
    if (!found.ok) return found;
    if (found.value.kind === "directory") return err({ reason: "not_a_file", path: found.value.path });
    return ok(this.#bytes(found.value.path));
  }

  write(path: string, bytes: Uint8Array): Result<void, WorkspaceRefusal> {
    const at = this.#writableFile(path, bytes.byteLength);
    if (!at.ok) return at;
    const exclusive = this.#replaces(at.value);
    if (!exclusive.ok) return exclusive;
    const parents = this.#missingParents(at.value);
    if (!parents.ok) return parents;
    const change = { path: at.value, kind: "file", size: bytes.byteLength, exclusive: exclusive.value } as const;
    const refusal = this.#admit([...parents.value.map(proposedDirectory), change]);
    if (refusal !== undefined) return refusal;
    this.#stageDirectories(parents.value);
    const content = new ByteParts(bytes);
    this.#changes.set(at.value, { kind: "file", content, exclusive: exclusive.value, modifiedAt: this.#now() });
    return ok(undefined);
  }

  append(path: string, bytes: Uint8Array): Result<void, WorkspaceRefusal> {
    const found = this.stat(path);
    const before = found.ok ? found.value.size : 0;
    const at = this.#writableFile(path, before + bytes.byteLength);
    if (!at.ok) return at;
    const staged = this.#changes.get(at.value);
    if (staged?.kind === "removed") return this.write(at.value, bytes);
    const parents = this.#missingParents(at.value);
    if (!parents.ok) return parents;
    const content = staged !== undefined && staged.kind !== "directory" ? staged.content : undefined;
    const size = (content?.size ?? 0) + bytes.byteLength;
    const kind = staged?.kind === "file" ? "file" : "append";
    const exclusive = staged?.kind === "file" && staged.exclusive;
    const refusal = this.#admit([...parents.value.map(proposedDirectory), { path: at.value, kind, size, exclusive }]);
    if (refusal !== undefined) return refusal;
    this.#stageDirectories(parents.value);
    if (content === undefined) this.#changes.set(at.value, this.#newAppend(bytes));
    else content.push(bytes);
    return ok(undefined);
  }

  makeDirectory(path: string): Result<void, WorkspaceRefusal> {
    const at = normalizeWorkspacePath(path);
    if (!at.ok) return at;
    const existing = this.#find(at.value);
    if (existing?.kind === "directory") return ok(undefined);
    if (existing !== undefined) return err({ reason: "not_a_directory", path: at.value });
    const parents = this.#missingParents(at.value);
    if (!parents.ok) return parents;
    const created = [...parents.value, at.value];
    const refusal = this.#admit(created.map(proposedDirectory));
    if (refusal !== undefined) return refusal;
    this.#stageDirectories(created);
    return ok(undefined);
  }

  remove(path: string, options: { recursive: boolean }): Result<void, WorkspaceRefusal> {
    const found = this.stat(path);
    if (!found.ok) return found;
    const at = found.value.path;
    if (at === WORKSPACE_ROOT) return err({ reason: "path_refused", path: at, why: "the root cannot be removed" });
    const below = found.value.kind === "directory" ? this.#below(at) : [];
    if (below.length > 0 && !options.recursive) return err({ reason: "not_empty", path: at });
    const removed = new Map<string, boolean>();
    for (const entry of [found.value, ...below]) {
      const exclusive = this.#replaces(entry.path);
      if (!exclusive.ok) return exclusive;
      removed.set(entry.path, exclusive.value);
    }
    const proposed = [...removed].map(([path, exclusive]) => ({ path, kind: "removed", size: 0, exclusive }) as const);
    const refusal = this.#admit(proposed);
    if (refusal !== undefined) return refusal;
    for (const [path, exclusive] of removed) this.#stageRemoval(path, exclusive);
    return ok(undefined);
  }

  /** What the session sees at a normalised path. */
  #find(path: string): WorkspaceEntry | undefined {
    const change = this.#changes.get(path);
    return change === undefined ? withoutVersion(this.#base.find(path)) : this.#staged(path, change);
  }

  #staged(path: string, change: StagedChange): WorkspaceEntry | undefined {
    if (change.kind === "removed") return undefined;
    if (change.kind === "directory") return { path, kind: "directory", size: 0, modifiedAt: change.modifiedAt };
    const before = change.kind === "append" ? (this.#base.find(path)?.size ?? 0) : 0;
    return { path, kind: "file", size: before + change.content.size, modifiedAt: change.modifiedAt };
  }

  #bytes(path: string): Uint8Array {
    const change = this.#changes.get(path);
    if (change?.kind === "file") return change.content.bytes();
    const committed = this.#committedBytes(path);
    if (change?.kind !== "append") return committed;
    return committed.byteLength === 0 ? change.content.bytes() : concatBytes(committed, change.content.bytes());
  }

  #committedBytes(path: string): Uint8Array {
    const entry = this.#base.find(path);
    if (entry === undefined) return new Uint8Array();
    this.#versionsRead.set(path, entry.version);
    return this.#base.readBytes(path);
  }

  /** Every visible entry below a directory, ordered by path. */
  #below(directory: string): readonly WorkspaceEntry[] {
    return this.#visible(this.#base.descendants(directory), (staged) => isBelow(staged, directory));
  }

  /** Base entries with the staged changes of the same area laid over them. */
  #visible(base: readonly BaseEntry[], isInArea: (path: string) => boolean): readonly WorkspaceEntry[] {
    const entries = new Map<string, WorkspaceEntry | undefined>();
    for (const entry of base) entries.set(entry.path, withoutVersion(entry));
    for (const [path, change] of this.#changes) if (isInArea(path)) entries.set(path, this.#staged(path, change));
    const visible = [...entries.values()].filter((entry) => entry !== undefined);
    return visible.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  #directory(path: string): Result<string, WorkspaceRefusal> {
    const found = this.stat(path);
    if (!found.ok) return found;
    if (found.value.kind === "file") return err({ reason: "not_a_directory", path: found.value.path });
    return ok(found.value.path);
  }

  #writableFile(path: string, bytes: number): Result<string, WorkspaceRefusal> {
    const at = normalizeWorkspacePath(path);
    if (!at.ok) return at;
    if (this.#find(at.value)?.kind === "directory") return err({ reason: "not_a_file", path: at.value });
    if (bytes > FILE_BYTES_MAX) return err({ reason: "file_too_large", path: at.value, bytes, limit: FILE_BYTES_MAX });
    return at;
  }

  /** Whether replacing `path` is a read-modify-write; refused when what was read is no longer what is committed. */
  #replaces(path: string): Result<boolean, WorkspaceRefusal> {
    const staged = this.#changes.get(path);
    if (staged !== undefined && (staged.kind === "file" || staged.kind === "removed")) return ok(staged.exclusive);
    const read = this.#versionsRead.get(path);
    if (read === undefined) return ok(false);
    return this.#base.find(path)?.version === read ? ok(true) : err({ reason: "changed", path });
  }

  #missingParents(path: string): Result<readonly string[], WorkspaceRefusal> {
    const missing: string[] = [];
    for (const ancestor of ancestorPaths(path)) {
      const entry = this.#find(ancestor);
      if (entry?.kind === "file") return err({ reason: "not_a_directory", path: ancestor });
      if (entry === undefined) missing.push(ancestor);
    }
    return ok(missing);
  }

  #admit(proposed: readonly ProposedChange[]): Refusal | undefined {
    if (this.#closed) return err({ reason: "read_only", path: proposed.at(-1)?.path ?? WORKSPACE_ROOT });
    const refusal = this.#rules(proposed);
    return refusal === undefined ? undefined : err(refusal);
  }

  #stageDirectories(paths: readonly string[]): void {
    for (const path of paths) this.#changes.set(path, { kind: "directory", modifiedAt: this.#now() });
  }

  #stageRemoval(path: string, exclusive: boolean): void {
    if (this.#base.find(path) === undefined) this.#changes.delete(path);
    else this.#changes.set(path, { kind: "removed", exclusive });
  }

  #newAppend(bytes: Uint8Array): StagedChange {
    return { kind: "append", content: new ByteParts(bytes), modifiedAt: this.#now() };
  }
}

function proposedDirectory(path: string): ProposedChange {
  return { path, kind: "directory", size: 0, exclusive: false };
}

function withoutVersion(entry: BaseEntry | undefined): WorkspaceEntry | undefined {
  if (entry === undefined) return undefined;
  const { path, kind, size, modifiedAt } = entry;
  return { path, kind, size, modifiedAt };
}
