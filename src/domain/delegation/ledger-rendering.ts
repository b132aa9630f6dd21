/**
 * The ledger as data in a model request (delegation-behaviour 5.5): newest first, escaped, within a budget.
 * Owns lines and guidance. Everything in it is untrusted text and belongs into a human message.
 */
import { unreachable } from "../shared/assert.ts";
import { escapeMarkup } from "../trust/escape-markup.ts";
import { boundText } from "./bounded-text.ts";
import type { LedgerEntry } from "./ledger.ts";

export const LEDGER_RENDER_CHARS_MAX = 6_000;
const BRIEF_CHARS_MAX = 120;

/** "" when nothing was delegated. */
export function renderLedger(entries: readonly LedgerEntry[]): string {
  if (entries.length === 0) return "";
  const lines = entries.toReversed().map(renderEntry);
  const shown: string[] = [];
  let used = 0;
  for (const line of lines) {
    if (used + line.length + 1 > LEDGER_RENDER_CHARS_MAX) break;
    shown.push(line);
    used += line.length + 1;
  }
  while (shown.length < lines.length && used + omitted(lines.length - shown.length).length > LEDGER_RENDER_CHARS_MAX) {
    used -= (shown.pop()?.length ?? 0) + 1;
  }
  if (shown.length < lines.length) shown.push(omitted(lines.length - shown.length));
  return `## Work already delegated\n${shown.join("\n")}`;
}

function omitted(count: number): string {
  return `- (${count} older ${count === 1 ? "entry" : "entries"} omitted)`;
}

function renderEntry(entry: LedgerEntry): string {
  const brief =
    entry.result_brief === undefined ? "" : ` -> ${toField(boundText(entry.result_brief, BRIEF_CHARS_MAX))}`;
  const { status, description, subagent_type: type } = entry;
  return `- [${status}] ${toField(description)} (via ${toField(type)}; ${guidance(entry)})${brief}`;
}

function guidance(entry: LedgerEntry): string {
  if (entry.stop_reason !== undefined) {
    return entry.status === "completed"
      ? "hit a guardrail cap with a partial result: use what it has, narrow the task, or raise `max_turns`"
      : "hit a guardrail cap with no usable result: change the plan before another attempt";
  }
  switch (entry.status) {
    case "in_progress":
      return "already delegated, do NOT delegate again";
    case "completed":
      return "do NOT delegate again, reuse this result";
    case "failed":
    case "cancelled":
    case "timed_out":
    case "polling_timed_out":
      return "prior attempt, may be retried with a changed plan";
    default:
      return unreachable(entry.status);
  }
}

function toField(text: string): string {
  return escapeMarkup(text.replaceAll(/\s+/g, " ").trim());
}
