/**
 * Text cut to a bound with its beginning and its end kept and the gap named.
 */
import { cutEnd, cutStart } from "../../domain/shared/cut-text.ts";

export function boundedText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const head = cutEnd(text, Math.floor((charsMax * 2) / 3));
  const tail = cutStart(text, charsMax - Math.floor((charsMax * 2) / 3));
  const omitted = text.length - head.length - tail.length;
  return `${head}\n[... ${omitted} of ${text.length} characters left out ...]\n${tail}`;
}
