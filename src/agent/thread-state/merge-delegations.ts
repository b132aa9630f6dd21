/**
 * The reducer of the delegation ledger.
 * Owns how entries fold and which are evicted. Invariants (R180): the latest entry of an id wins, a terminal entry never
 * goes back to running, the ledger is bounded, and the newest run's own entries are never evicted, because the cap of
 * delegations per run is counted from them.
 */
import { SUBAGENT_STATUSES } from "../../domain/delegation/status-contract.ts";
import type { DelegationEntry } from "./thread-state.ts";

/** Equal to the largest cap of delegations per run, so one run's entries always fit. */
export const DELEGATION_ENTRIES_MAX = 50;

const TERMINAL_STATUSES: ReadonlySet<string> = new Set(SUBAGENT_STATUSES);

function isTerminal(entry: DelegationEntry): boolean {
  return TERMINAL_STATUSES.has(entry.status);
}

/** The whole record is replaced; when it was accepted and by which run stays known. */
function replace(previous: DelegationEntry, incoming: DelegationEntry): DelegationEntry {
  const next = { ...incoming };
  if (previous.created_at !== undefined && previous.created_at.trim() !== "") next.created_at = previous.created_at;
  if (next.run_id === undefined && previous.run_id !== undefined) next.run_id = previous.run_id;
  return next;
}

function fold(entries: readonly DelegationEntry[]): DelegationEntry[] {
  const byId = new Map<string, DelegationEntry>();
  for (const entry of entries) {
    const previous = byId.get(entry.id);
    if (previous === undefined) byId.set(entry.id, entry);
    else if (!isTerminal(previous) || isTerminal(entry)) byId.set(entry.id, replace(previous, entry));
  }
  return [...byId.values()];
}

/** Entries are in the order they were first seen, so the last one's run is the newest. */
function evict(entries: DelegationEntry[]): DelegationEntry[] {
  let excess = entries.length - DELEGATION_ENTRIES_MAX;
  if (excess <= 0) return entries;
  const newestRun = entries.at(-1)?.run_id;
  return entries.filter((entry) => {
    const isOwn = newestRun !== undefined && entry.run_id === newestRun;
    if (excess <= 0 || isOwn) return true;
    excess -= 1;
    return false;
  });
}

export function mergeDelegations(
  current: readonly DelegationEntry[] | null | undefined,
  incoming: readonly DelegationEntry[] | null | undefined,
): DelegationEntry[] {
  const held = current ?? [];
  if (incoming === null || incoming === undefined || incoming.length === 0) return [...held];
  return evict(fold([...held, ...incoming]));
}
