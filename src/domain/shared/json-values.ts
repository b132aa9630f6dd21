/**
 * How many values a JSON text holds, told from the text: parsed, each would cost many times its characters.
 * Owns the count only; a text that is no JSON has a count too.
 */

/** True when there are more than `max` values in the text, lists and objects included. Stops at the first past it. */
export function hasMoreValues(json: string, max: number): boolean {
  let count = 1;
  let isInText = false;
  for (let at = 0; at < json.length && count <= max; at += 1) {
    const sign = json[at];
    if (isInText) {
      if (sign === "\\") at += 1;
      else if (sign === '"') isInText = false;
    } else if (sign === '"') isInText = true;
    // Every value but the first stands behind one of these; an empty list counts one too many.
    else if (sign === "," || sign === "[" || sign === "{") count += 1;
  }
  return count > max;
}
