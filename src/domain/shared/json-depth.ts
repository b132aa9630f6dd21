/** How deep JSON nests. Much of what reads JSON recurses, and a text of a few kilobytes can nest thousands of levels. */

/**
 * Ours, for whatever comes from outside: no honest message, metadata or tool argument nests so deep, and everything that
 * reads it (RPC, LangChain, SQLite's JSON functions, which stop at 1,000) still can.
 */
export const JSON_DEPTH_MAX = 100;

/** True when objects and lists nest more than `max` levels. Goes no deeper than that itself. */
export function nestsDeeper(value: unknown, max: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return max === 0 || Object.values(value).some((inner) => nestsDeeper(inner, max - 1));
}
