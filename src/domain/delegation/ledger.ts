/**
 * Decisions of the delegation ledger (delegation-behaviour 5.1 to 5.3) over plain shapes: which entries a dispatch and a
 * result lead to. Owns entry contents; how entries fold is `merge_delegations`. Status comes from metadata, never from text.
 */
import { CODE_POINTS } from "../shared/cut-text.ts";
import { parseDelegationKwargs } from "./delegation-result.ts";
import { isSubagentStatus } from "./delegation-outcome.ts";
import type { SubagentStatus, SubagentStopReason } from "./status-contract.ts";

export const LEDGER_DESCRIPTION_CHARS_MAX = 200;

export interface LedgerEntry {
  readonly id: string;
  readonly run_id?: string;
  readonly description: string;
  readonly subagent_type: string;
  readonly status: "in_progress" | SubagentStatus;
  readonly result_brief?: string;
  readonly result_sha256?: string;
  readonly result_ref?: string;
  readonly stop_reason?: SubagentStopReason;
  readonly created_at?: string;
}

export interface DispatchedCall {
  readonly id: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** One `in_progress` entry per call that the ledger does not know; a known id is never tagged again. */
export function decideDispatches(
  calls: readonly DispatchedCall[],
  known: readonly LedgerEntry[],
  stamp: { readonly runId: string | undefined; readonly createdAt: string },
): readonly LedgerEntry[] {
  const knownIds = new Set(known.map((entry) => entry.id));
  const byId = new Map<string, LedgerEntry>();
  for (const call of calls) {
    if (knownIds.has(call.id)) continue;
    const description = text(call.args.description) || text(call.args.prompt);
    byId.set(call.id, {
      id: call.id,
      ...(stamp.runId === undefined ? {} : { run_id: stamp.runId }),
      description: CODE_POINTS.first(description, LEDGER_DESCRIPTION_CHARS_MAX),
      // The model's word as well: one that names no type may be as long as an answer.
      subagent_type: CODE_POINTS.first(text(call.args.subagent_type), LEDGER_DESCRIPTION_CHARS_MAX),
      status: "in_progress",
      created_at: stamp.createdAt,
    });
  }
  return [...byId.values()];
}

/**
 * The calls of a history that may still be missing in the ledger, in their order. A full ledger has evicted entries whose
 * calls are still in the history: those before the oldest one it kept are not taken up again.
 */
export function callsNotEvicted(
  calls: readonly DispatchedCall[],
  known: readonly LedgerEntry[],
  entriesMax: number,
): readonly DispatchedCall[] {
  if (known.length < entriesMax) return calls;
  const kept = new Set(known.map((entry) => entry.id));
  const oldest = calls.findIndex((call) => kept.has(call.id));
  return oldest < 0 ? calls.slice(-entriesMax) : calls.slice(oldest);
}

export interface ResultMessage {
  readonly toolCallId: string;
  readonly messageId: string | undefined;
  readonly kwargs: Readonly<Record<string, unknown>>;
}

const STATUS_LINES: Partial<Record<SubagentStatus, string>> = {
  failed: "Task failed.",
  cancelled: "Task cancelled by user.",
  timed_out: "Task timed out.",
  polling_timed_out: "Task polling timed out.",
};

/** Terminal entries for results whose delegation is still in progress. Repeating it gives nothing new. */
export function decideResults(
  results: readonly ResultMessage[],
  known: readonly LedgerEntry[],
  sha256: (text: string) => string,
): readonly LedgerEntry[] {
  const open = new Map(known.filter((entry) => !isSubagentStatus(entry.status)).map((entry) => [entry.id, entry]));
  return results.flatMap((result) => {
    const entry = open.get(result.toolCallId);
    const metadata = parseDelegationKwargs(result.kwargs);
    if (entry === undefined || metadata === undefined) return [];
    const brief = metadata.resultBrief ?? metadata.error ?? STATUS_LINES[metadata.status];
    return [
      {
        ...entry,
        status: metadata.status,
        ...(brief === undefined ? {} : { result_brief: brief, result_sha256: metadata.resultSha256 ?? sha256(brief) }),
        ...(metadata.stopReason === undefined ? {} : { stop_reason: metadata.stopReason }),
        result_ref: result.messageId ?? result.toolCallId,
      },
    ];
  });
}

/** How many delegations count toward a run's cap: its own; without a run id, all (the restrictive reading). */
export function countRunDelegations(entries: readonly LedgerEntry[], runId: string | undefined): number {
  const counted = runId === undefined ? entries : entries.filter((entry) => entry.run_id === runId);
  return new Set(counted.map((entry) => entry.id)).size;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
