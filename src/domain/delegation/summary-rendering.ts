/**
 * The summary of a compacted conversation as data in a model request (R107): escaped, both ends kept within a bound.
 * A model wrote it out of what users and tools said: it belongs into a human message.
 */
import { escapeMarkup } from "../trust/escape-markup.ts";
import { boundText } from "./bounded-text.ts";

/** As much as the ledger may take beside it. */
export const SUMMARY_RENDER_CHARS_MAX = 6_000;

/** "" when there is none. Bounded as it is sent, so after escaping. */
export function renderSummary(summary: string | null | undefined): string {
  const text = (summary ?? "").trim();
  return text === ""
    ? ""
    : `## Conversation summary so far\n${boundText(escapeMarkup(text), SUMMARY_RENDER_CHARS_MAX)}`;
}
