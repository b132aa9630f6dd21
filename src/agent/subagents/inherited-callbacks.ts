/**
 * Which of a parent's callback handlers a child gets: all of them, but those that keep the parent's own record (R135). A
 * handler says so itself, with `parentJournal: true`: what it adds up are the parent's answers, and a child's are told by
 * the result of its `task` call. Invariant: the parent's manager and list stay as they are; what is taken out, is out of
 * a copy.
 */
import type { Callbacks } from "@langchain/core/callbacks/manager";

export interface ParentJournal {
  readonly parentJournal: true;
}

export function inheritedCallbacks(callbacks: Callbacks | undefined): Callbacks | undefined {
  if (callbacks === undefined) return undefined;
  if (Array.isArray(callbacks)) return callbacks.filter((handler) => !isParentJournal(handler));
  const journals = callbacks.handlers.filter(isParentJournal);
  if (journals.length === 0) return callbacks;
  const copy = callbacks.copy();
  for (const journal of journals) copy.removeHandler(journal);
  return copy;
}

function isParentJournal(handler: object): boolean {
  return (handler as Partial<ParentJournal>).parentJournal === true;
}
