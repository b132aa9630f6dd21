/**
 * Managed subagents as data in a lead's request: one escaped line each, within a budget (R22, R173).
 * Owns lines and bounds. Everything in it was written through the API and belongs into a human message.
 */
import { escapeMarkup } from "../trust/escape-markup.ts";
import { boundText } from "./bounded-text.ts";

/** One line says what a type is for. */
const LINE_CHARS_MAX = 200;

/** With lines of the bound above some fifty types; the rest are counted. */
const CATALOGUE_CHARS_MAX = 12_000;

export interface ListedSubagent {
  readonly name: string;
  readonly description: string;
}

/** "" when there are none. */
export function renderManagedSubagents(subagents: readonly ListedSubagent[]): string {
  if (subagents.length === 0) return "";
  const lines: string[] = [];
  let used = 0;
  for (const { name, description } of subagents) {
    const line = `- ${name}: ${toLine(description)}`;
    used += line.length + 1;
    if (used > CATALOGUE_CHARS_MAX) break;
    lines.push(line);
  }
  const hidden = subagents.length - lines.length;
  if (hidden > 0) lines.push(`- (${hidden} more ${hidden === 1 ? "type is" : "types are"} not shown)`);
  return `## Further subagent types\n${lines.join("\n")}`;
}

function toLine(description: string): string {
  const [first = ""] = description.trim().split(/[\r\n\u2028\u2029]/);
  // Collapsed after the cut, whose mark stands on lines of its own.
  return escapeMarkup(boundText(first, LINE_CHARS_MAX).replaceAll(/\s+/g, " ").trim());
}
