/**
 * Text cut to a length in UTF-16 units, never inside a surrogate pair: half of one would come back from storage as other
 * characters, or not at all.
 */

/** At most `chars` from the start. */
export function cutEnd(text: string, chars: number): string {
  return text.slice(0, isInsidePair(text, chars) ? chars - 1 : chars);
}

/** At most `chars` from the end. */
export function cutStart(text: string, chars: number): string {
  const from = text.length - chars;
  return text.slice(isInsidePair(text, from) ? from + 1 : from);
}

function isInsidePair(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1);
  const after = text.charCodeAt(at);
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}
