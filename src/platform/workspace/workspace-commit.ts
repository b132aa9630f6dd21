/**
 * Applies a session's staged changes to the rows, in the caller's transaction.
 *
 * Owns the order: removals from the deepest up, then directories, then files; then the head, once. Invariant: the
 * result is what the session saw, on top of what others committed meanwhile: appends are added to the bytes that are
 * there now.
 */
import type { StagedChange } from "../../agent/tools/workspace-overlay.ts";
import { concatBytes } from "../../agent/tools/byte-parts.ts";
import { parentPath, WORKSPACE_ROOT } from "../../domain/workspace/paths.ts";
import type { RowsDelta, WorkspaceRows } from "./workspace-rows.ts";

/** True when any row was written; `version` numbers what this commit writes. */
export function applyChanges(
  rows: WorkspaceRows,
  changes: ReadonlyMap<string, StagedChange>,
  version: number,
): boolean {
  const ordered = [...changes].sort(([a], [b]) => (a < b ? -1 : 1));
  const removals = ordered.filter(([path, change]) => replacesOrRemoves(rows, path, change)).reverse();
  const deltas = [
    ...removals.map(([path]) => rows.removeEntry(path)),
    ...ordered.flatMap(([path, change]) => save(rows, { path, change, version })),
  ].filter((delta) => delta.changed);
  if (deltas.length === 0) return false;
  const head = rows.head();
  rows.saveHead({
    version,
    bytes: deltas.reduce((sum, delta) => sum + delta.bytes, head.bytes),
    entries: deltas.reduce((sum, delta) => sum + delta.entries, head.entries),
  });
  return true;
}

/** A file put where a directory was, or the other way round, takes the old entry away first. */
function replacesOrRemoves(rows: WorkspaceRows, path: string, change: StagedChange): boolean {
  if (change.kind === "removed") return true;
  const before = rows.find(path);
  return before !== undefined && (before.kind === "directory") !== (change.kind === "directory");
}

interface ChangeToSave {
  readonly path: string;
  readonly change: StagedChange;
  readonly version: number;
}

function save(rows: WorkspaceRows, { path, change, version }: ChangeToSave): readonly RowsDelta[] {
  if (change.kind === "removed") return [];
  const { modifiedAt } = change;
  if (change.kind === "directory") return [rows.saveDirectory(path, { modifiedAt, version })];
  const staged = change.content.bytes();
  const isAddition = change.kind === "append" && rows.find(path) !== undefined;
  const bytes = isAddition ? concatBytes(rows.readBytes(path), staged) : staged;
  return [...parents(rows, { path, change, version }), rows.saveFile({ path, bytes, modifiedAt, version })];
}

/** Another call's commit may have removed a directory that this file stands in. */
function parents(rows: WorkspaceRows, { path, change, version }: ChangeToSave): readonly RowsDelta[] {
  const parent = parentPath(path);
  if (parent === WORKSPACE_ROOT || change.kind === "removed") return [];
  return [rows.saveDirectory(parent, { modifiedAt: change.modifiedAt, version })];
}
