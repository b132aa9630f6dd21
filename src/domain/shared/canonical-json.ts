/**
 * One text for equal JSON values: fields in the order of their names, at every depth. What two bodies are compared by.
 * Takes what `JSON.parse` gives, whose depth the edge has bounded.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, inner]) => `${JSON.stringify(name)}:${canonicalJson(inner)}`);
  return `{${fields.join(",")}}`;
}
