/**
 * What of a value is not JSON, each part by its path. A value that came out of memory, and not from a JSON text, can hold
 * numbers, holes and prototypes that no text keeps; `1e999` in a text reads as Infinity.
 * Owns the walk, which is a loop: nothing here recurses into a value. Bounds end it where a value refers to itself.
 */
import { JSON_DEPTH_MAX } from "../shared/json-depth.ts";

/** Values inside one value. A structured answer is a record or a list of some hundred, not a data set. */
export const JSON_VALUES_MAX = 10_000;

/** A JSON pointer; the value itself is `(root)`. */
export function pathText(path: string): string {
  return path === "" ? "(root)" : path;
}

export function childPath(path: string, key: string | number): string {
  return `${path}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** A record made by `{}`, a JSON text or a null prototype. */
export function isPlainRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Every violation, in the order of a walk. Past the bound on values the walk stops and says so. */
export function findNonJson(root: unknown, rootPath = ""): string[] {
  const violations: string[] = [];
  const waiting: [unknown, string, number][] = [[root, rootPath, 0]];
  for (let count = 1; waiting.length > 0; count += 1) {
    const [value, path, depth] = waiting.pop() as [unknown, string, number];
    if (count > JSON_VALUES_MAX) {
      return [...violations, `${pathText(path)}: more than ${JSON_VALUES_MAX} values, or one that holds itself`];
    }
    const problem = problemOf(value, depth);
    if (problem !== undefined) violations.push(`${pathText(path)}: ${problem}`);
    else waiting.push(...childrenOf(value, path, depth).toReversed());
  }
  return violations;
}

function problemOf(value: unknown, depth: number): string | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${value} is not a JSON number`;
  if (typeof value !== "object") return `${typeof value} is not a type of JSON`;
  if (depth >= JSON_DEPTH_MAX) return `nests deeper than ${JSON_DEPTH_MAX} levels, or holds itself`;
  if (Object.getOwnPropertySymbols(value).length > 0) return "has a symbol as a key";
  if (Array.isArray(value)) {
    const isDense =
      Object.keys(value).length === value.length && Object.keys(value).every((key, at) => key === `${at}`);
    return isDense ? undefined : "has holes or named properties";
  }
  return isPlainRecord(value) ? undefined : "is an object of a class";
}

function childrenOf(value: unknown, path: string, depth: number): [unknown, string, number][] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).map(([key, inner]) => [inner, childPath(path, key), depth + 1]);
}
