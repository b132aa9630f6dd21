/**
 * The reducers of ThreadState's channels other than `messages`: `(current, incoming) => next`, pure and total.
 * Owns merge rules and their bounds. `mergeSandbox` alone throws: two sandboxes in one thread is an isolation fault.
 * `null` and `undefined` both mean "nothing": nothing incoming keeps what is there.
 */
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import { InvariantError } from "../../domain/shared/assert.ts";
import type { Goal, PromotedTools, SandboxState, SkillContextEntry, Todo, ViewedImage } from "./thread-state.ts";

type Maybe<T> = T | null | undefined;

/** Skill references kept: more would crowd the rendered context. */
export const SKILL_CONTEXT_ENTRIES_MAX = 8;
/** Characters of a skill's description kept, for the same reason. */
export const SKILL_DESCRIPTION_CHARS_MAX = 500;

function orderedUnion(...lists: readonly (readonly string[])[]): string[] {
  return [...new Set(lists.flat())];
}

export function mergeSandbox(current: Maybe<SandboxState>, incoming: Maybe<SandboxState>): SandboxState | null {
  if (incoming === null || incoming === undefined) return current ?? null;
  if (current === null || current === undefined) return incoming;
  const held = current.sandbox_id ?? null;
  const given = incoming.sandbox_id ?? null;
  if (held === given) return current;
  throw new InvariantError(`one thread, one sandbox: state holds '${held}', the write names '${given}'`);
}

export function mergeArtifacts(current: Maybe<readonly string[]>, incoming: Maybe<readonly string[]>): string[] {
  return orderedUnion(current ?? [], incoming ?? []);
}

/** An empty object clears. */
export function mergeViewedImages(
  current: Maybe<Record<string, ViewedImage>>,
  incoming: Maybe<Record<string, ViewedImage>>,
): Record<string, ViewedImage> {
  if (incoming === null || incoming === undefined) return current ?? {};
  return Object.keys(incoming).length === 0 ? {} : { ...current, ...incoming };
}

/** An empty list replaces: a plan can be emptied. */
export function mergeTodos(current: Maybe<Todo[]>, incoming: Maybe<Todo[]>): Todo[] | null {
  return incoming ?? current ?? null;
}

/** Null keeps the active goal, so a step that knows of none cannot drop it (R178). */
export function mergeGoal(current: Maybe<Goal>, incoming: Maybe<Goal>): Goal | null {
  return incoming ?? current ?? null;
}

function isPromotedTools(value: Maybe<PromotedTools>): value is PromotedTools {
  return typeof value?.catalog_hash === "string" && Array.isArray(value.names);
}

/** Names promoted under another catalogue mean nothing: another hash replaces, even by an empty list. */
export function mergePromoted(current: Maybe<PromotedTools>, incoming: Maybe<PromotedTools>): PromotedTools | null {
  if (!isPromotedTools(incoming)) return current ?? null;
  const sameCatalogue = isPromotedTools(current) && current.catalog_hash === incoming.catalog_hash;
  const names = sameCatalogue ? orderedUnion(current.names, incoming.names) : orderedUnion(incoming.names);
  return { catalog_hash: incoming.catalog_hash, names };
}

/** References only: whatever else an entry carries (an older form held the body) is dropped. */
function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function toSkillReference(entry: SkillContextEntry): SkillContextEntry {
  return {
    name: textOf(entry.name),
    path: entry.path,
    description: UTF16_UNITS.first(
      textOf(entry.description).split(/\s+/).filter(Boolean).join(" "),
      SKILL_DESCRIPTION_CHARS_MAX,
    ),
    loaded_at: Number.isInteger(entry.loaded_at) ? entry.loaded_at : 0,
  };
}

function toSkillReferences(entries: Maybe<readonly SkillContextEntry[]>): SkillContextEntry[] {
  return (entries ?? []).filter((entry) => typeof entry.path === "string" && entry.path !== "").map(toSkillReference);
}

/** A path loaded again moves to the end. The cap applies only when something came in. */
export function mergeSkillContext(
  current: Maybe<readonly SkillContextEntry[]>,
  incoming: Maybe<readonly SkillContextEntry[]>,
): SkillContextEntry[] {
  const held = toSkillReferences(current);
  if (incoming === null || incoming === undefined || incoming.length === 0) return held;
  const byPath = new Map(held.map((entry) => [entry.path, entry]));
  for (const entry of toSkillReferences(incoming)) {
    byPath.delete(entry.path);
    byPath.set(entry.path, entry);
  }
  return [...byPath.values()].slice(-SKILL_CONTEXT_ENTRIES_MAX);
}
