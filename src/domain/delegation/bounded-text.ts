/**
 * Cutting text to a bound without splitting a code point (a half surrogate pair is not valid text for any store).
 * Owns the one bounding rule of delegation fields: two thirds of the head, a marker, the rest as tail.
 */

/** Marks where the middle was left out. */
const CUT_MARKER = "\n...\n";

/** The first `max` code points. */
export function firstCodePoints(text: string, max: number): string {
  if (text.length <= max) return text;
  let end = 0;
  for (let count = 0; count < max && end < text.length; count += 1) end += codePointUnits(text, end);
  return text.slice(0, end);
}

function lastCodePoints(text: string, max: number): string {
  let start = text.length;
  for (let count = 0; count < max && start > 0; count += 1) start -= isLowSurrogate(text, start - 1) ? 2 : 1;
  return text.slice(Math.max(0, start));
}

/** True when `text` has more than `max` code points. */
export function exceedsCodePoints(text: string, max: number): boolean {
  return text.length > max && firstCodePoints(text, max).length < text.length;
}

/** `text` within `max` code points: unchanged, or head, marker and tail. A tiny bound leaves a plain prefix. */
export function boundText(text: string, max: number): string {
  if (!exceedsCodePoints(text, max)) return text;
  const head = Math.floor((max * 2) / 3);
  const tail = max - head - CUT_MARKER.length;
  if (max <= CUT_MARKER.length || tail <= 0) return firstCodePoints(text, max);
  return firstCodePoints(text, head) + CUT_MARKER + lastCodePoints(text, tail);
}

function codePointUnits(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xff_ff ? 2 : 1;
}

function isLowSurrogate(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc_00 && unit <= 0xdf_ff && (text.codePointAt(at - 1) ?? 0) > 0xff_ff;
}
