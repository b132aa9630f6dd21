/**
 * The workspace of a batch item: snapshot files that cannot be changed, and a writable rest that lives in memory.
 *
 * Owns both until the item ends; nothing is stored. All tool calls of the item share one session and see each other's
 * writes at once: the item is the unit of redo, so there is nothing to stage per call. Invariants: snapshot files keep
 * their bytes; what stands under `/workspace/outputs` fits an item's result at every instant, so `outputs()` never
 * has to drop anything.
 */
import { invariant } from "../../domain/shared/assert.ts";
import {
  ancestorPaths,
  isBelow,
  normalizeWorkspacePath,
  parentPath,
  WORKSPACE_ROOT,
} from "../../domain/workspace/paths.ts";
import { WorkspaceOverlay, type BaseEntry, type ProposedChange, type WorkspaceBase } from "./workspace-overlay.ts";
import type { WorkspaceFile, WorkspaceRefusal, WorkspaceSession, WorkspaceStaging } from "./workspace.ts";

export const OUTPUTS_DIRECTORY = `${WORKSPACE_ROOT}/outputs`;

/** 1 MiB (contracts, "Batches"): outputs travel inside the item's result row. */
export const OUTPUTS_BYTES_MAX = 1_024 * 1_024;
/** Ten items of a claim share an isolate of 128 MB with the graph (about 45 MB) and with bash. */
export const SCRATCH_BYTES_MAX = 4 * 1_024 * 1_024;
/** Keeps listings and the overlay small; an item that needs more is a thread's work. */
export const SCRATCH_ENTRIES_MAX = 1_000;

export interface ScratchParts {
  readonly files: readonly WorkspaceFile[];
  readonly now: () => number;
}

export class ScratchWorkspace implements WorkspaceStaging {
  readonly #overlay: WorkspaceOverlay;
  readonly #base: SnapshotBase;

  constructor(parts: ScratchParts) {
    this.#base = new SnapshotBase(parts.files, parts.now());
    this.#overlay = new WorkspaceOverlay({
      base: this.#base,
      rules: (proposed) => this.#refusal(proposed),
      now: parts.now,
    });
  }

  get session(): WorkspaceSession {
    return this.#overlay;
  }

  /** The item's one session, for every call. */
  open(_toolCallId: string): WorkspaceSession {
    return this.#overlay;
  }

  commit(_toolCallId: string): void {}

  discard(_toolCallId: string): void {}

  /** What the item wrote below `outputs/`, ordered by path; snapshot files are not its work. */
  outputs(): readonly WorkspaceFile[] {
    const written: WorkspaceFile[] = [];
    for (const [path, change] of this.#overlay.changes) {
      if (change.kind === "file" || change.kind === "append") {
        if (isBelow(path, OUTPUTS_DIRECTORY)) written.push({ path, bytes: change.content.bytes() });
      }
    }
    return written.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  #refusal(proposed: readonly ProposedChange[]): WorkspaceRefusal | undefined {
    const frozen = proposed.find((change) => change.kind !== "directory" && this.#base.has(change.path));
    if (frozen !== undefined) return { reason: "read_only", path: frozen.path };
    const sizes = this.#sizesWith(proposed);
    if (sizes.size > SCRATCH_ENTRIES_MAX) return { reason: "too_many_entries", limit: SCRATCH_ENTRIES_MAX };
    const bytes = sumOf(sizes, () => true);
    if (bytes > SCRATCH_BYTES_MAX) return { reason: "workspace_full", bytes, limit: SCRATCH_BYTES_MAX };
    const outputs = sumOf(sizes, (path) => isBelow(path, OUTPUTS_DIRECTORY));
    if (outputs <= OUTPUTS_BYTES_MAX) return undefined;
    return { reason: "outputs_full", bytes: outputs, limit: OUTPUTS_BYTES_MAX };
  }

  #sizesWith(proposed: readonly ProposedChange[]): ReadonlyMap<string, number> {
    const sizes = new Map<string, number>();
    for (const [path, change] of this.#overlay.changes) sizes.set(path, "content" in change ? change.content.size : 0);
    for (const { path, size } of proposed) sizes.set(path, size);
    return sizes;
  }
}

/** The snapshot as a base: files given once, the directories above them derived. */
class SnapshotBase implements WorkspaceBase {
  readonly #files = new Map<string, Uint8Array>();
  readonly #entries = new Map<string, BaseEntry>();

  constructor(files: readonly WorkspaceFile[], modifiedAt: number) {
    this.#entries.set(WORKSPACE_ROOT, directoryEntry(WORKSPACE_ROOT, modifiedAt));
    for (const file of files) {
      const at = normalizeWorkspacePath(file.path);
      invariant(at.ok && at.value !== WORKSPACE_ROOT, `snapshot path ${file.path} is a workspace path`);
      for (const ancestor of ancestorPaths(at.value)) this.#entries.set(ancestor, directoryEntry(ancestor, modifiedAt));
      const size = file.bytes.byteLength;
      this.#entries.set(at.value, { path: at.value, kind: "file", size, modifiedAt, version: 1 });
      this.#files.set(at.value, file.bytes);
    }
  }

  has(path: string): boolean {
    return this.#entries.has(path);
  }

  find(path: string): BaseEntry | undefined {
    return this.#entries.get(path);
  }

  children(directory: string): readonly BaseEntry[] {
    return [...this.#entries.values()].filter((entry) => parentPath(entry.path) === directory);
  }

  descendants(directory: string): readonly BaseEntry[] {
    return [...this.#entries.values()].filter((entry) => isBelow(entry.path, directory));
  }

  readBytes(path: string): Uint8Array {
    const bytes = this.#files.get(path);
    invariant(bytes !== undefined, `the snapshot has ${path}`);
    return bytes;
  }
}

function directoryEntry(path: string, modifiedAt: number): BaseEntry {
  return { path, kind: "directory", size: 0, modifiedAt, version: 1 };
}

function sumOf(sizes: ReadonlyMap<string, number>, counts: (path: string) => boolean): number {
  let sum = 0;
  for (const [path, size] of sizes) if (counts(path)) sum += size;
  return sum;
}
