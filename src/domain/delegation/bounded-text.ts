/**
 * The bound of delegation fields: both ends are kept and the gap is marked, all of it within the bound in code points.
 */
import { CODE_POINTS, cutText, type Cut } from "../shared/cut-text.ts";

/** Marks where the middle was left out. */
const MARK = "\n...\n";

const CUT: Cut = { ruler: CODE_POINTS, keeps: "both_ends", mark: () => MARK, markChars: MARK.length };

/** `text` within `max` code points. */
export function boundText(text: string, max: number): string {
  return cutText(text, max, CUT);
}
