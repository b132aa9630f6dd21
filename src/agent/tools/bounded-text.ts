/**
 * Text cut to a bound with its beginning and its end kept and the gap named. Cuts fall between code points: half of a
 * surrogate pair would come back from storage as other characters.
 */
export function boundedText(text: string, charsMax: number): string {
  if (text.length <= charsMax) return text;
  const head = cutEnd(text, Math.floor((charsMax * 2) / 3));
  const tail = cutStart(text, charsMax - Math.floor((charsMax * 2) / 3));
  const omitted = text.length - head.length - tail.length;
  return `${head}\n[... ${omitted} of ${text.length} characters left out ...]\n${tail}`;
}

/** At most `chars` from the start. */
export function cutEnd(text: string, chars: number): string {
  return text.slice(0, isInsidePair(text, chars) ? chars - 1 : chars);
}

function cutStart(text: string, chars: number): string {
  const from = text.length - chars;
  return text.slice(isInsidePair(text, from) ? from + 1 : from);
}

function isInsidePair(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1);
  const after = text.charCodeAt(at);
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}
