/**
 * The texts a batch adds: the note before an item's prompt and the mark where a result was cut.
 */
import { cutText, UTF16_UNITS } from "../shared/cut-text.ts";

/**
 * What the child reads. An item may run more than once (a worker that died after acting is not told apart from one that
 * died before), so the child is given a stable key and told so.
 */
export function itemPrompt(key: string, prompt: string): string {
  return [
    `Batch item key: ${key}`,
    "This item may be run more than once. Make every effect outside your own files idempotent under the item key:",
    "before you create, send or change something, check whether an earlier attempt already did.",
    "",
    prompt,
  ].join("\n");
}

/** At most `maxChars` characters, cut between code points, with a visible mark when something was cut. */
export function boundItemText(text: string, maxChars: number): string {
  const mark = `\n[cut: the full text has ${text.length} characters, the limit is ${maxChars}]`;
  return cutText(text, maxChars, {
    ruler: UTF16_UNITS,
    keeps: "beginning",
    mark: () => mark,
    markChars: mark.length,
  });
}
