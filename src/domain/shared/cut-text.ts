/**
 * Text cut to a bound, never inside a surrogate pair: half of one would come back from storage as other characters, or
 * not at all.
 * Owns the one way of cutting. What is kept, what marks the gap and how characters are counted are the caller's.
 */

/** How the length of a text is counted. */
export interface Ruler {
  /** True when `text` is longer than `max`. */
  readonly exceeds: (text: string, max: number) => boolean;
  /** At most `max` from the start. */
  readonly first: (text: string, max: number) => string;
  /** At most `max` from the end. */
  readonly last: (text: string, max: number) => string;
}

/** For bounds of storage and memory. A cut that would fall inside a pair leaves the whole pair out. */
export const UTF16_UNITS: Ruler = {
  exceeds: (text, max) => text.length > max,
  first: (text, max) => text.slice(0, isInsidePair(text, max) ? max - 1 : max),
  last: (text, max) => {
    const from = text.length - max;
    return text.slice(isInsidePair(text, from) ? from + 1 : from);
  },
};

/** For bounds of the delegation contract, which counts characters as its other implementations do. */
export const CODE_POINTS: Ruler = {
  exceeds: (text, max) => text.length > max && firstCodePoints(text, max).length < text.length,
  first: firstCodePoints,
  last: lastCodePoints,
};

export interface Cut {
  readonly ruler: Ruler;
  /** Of both ends the beginning gets two thirds of the bound. */
  readonly keeps: "beginning" | "both_ends";
  /** Stands where text was left out; is told how many UTF-16 units are. */
  readonly mark: (omitted: number) => string;
  /** How much of the bound the mark takes; 0 when it comes on top. */
  readonly markChars: number;
}

/** `text` as it is within `max`, else cut. A bound that leaves no room beside the mark gives a plain beginning. */
export function cutText(text: string, max: number, { ruler, keeps, mark, markChars }: Cut): string {
  if (!ruler.exceeds(text, max)) return text;
  const room = max - markChars;
  const headMax = keeps === "beginning" ? room : Math.floor((max * 2) / 3);
  if (room <= 0 || (keeps === "both_ends" && headMax >= room)) return ruler.first(text, max);
  const head = ruler.first(text, headMax);
  const tail = ruler.last(text, room - headMax);
  return head + mark(text.length - head.length - tail.length) + tail;
}

function firstCodePoints(text: string, max: number): string {
  if (text.length <= max) return text;
  let end = 0;
  for (let count = 0; count < max && end < text.length; count += 1) end += isInsidePair(text, end + 1) ? 2 : 1;
  return text.slice(0, end);
}

function lastCodePoints(text: string, max: number): string {
  let start = text.length;
  for (let count = 0; count < max && start > 0; count += 1) start -= isInsidePair(text, start - 1) ? 2 : 1;
  return text.slice(start);
}

function isInsidePair(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1);
  const after = text.charCodeAt(at);
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}
