/**
 * Refuses by name what the LangGraph API knows and Deputy does not honour yet: nothing is accepted and ignored
 * (contracts, "Run options"). An option set to null, or one that takes a list set to
 * an empty one, counts as not set.
 */
import { type Result, ok } from "../domain/shared/result.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import { refuse } from "./errors.ts";

export interface UnsupportedOptions {
  readonly options?: readonly string[];
  readonly values?: Readonly<Record<string, readonly (string | boolean)[]>>;
}

/** The input without its null fields and without the (null) unsupported ones; of a list, each element so. Anything else passes as is. */
export function withoutUnsupported(input: unknown, unsupported: UnsupportedOptions): Result<unknown, ApiRefusal> {
  if (Array.isArray(input)) return eachWithoutUnsupported(input, unsupported);
  if (typeof input !== "object" || input === null) return ok(input);
  const set = Object.entries(input).filter(([, value]) => value !== null);
  for (const [field, value] of set) {
    if (unsupported.options?.includes(field) === true && !isEmptyList(value)) return refuseOption(field);
    const refused = firstUnsupportedValue(value, unsupported.values?.[field]);
    if (refused !== undefined) return refuseOption(field, refused);
  }
  const asksNothing = (field: string, value: unknown) =>
    unsupported.options?.includes(field) === true && isEmptyList(value);
  return ok(Object.fromEntries(set.filter(([field, value]) => !asksNothing(field, value))));
}

/** Of a body that is a list: the first refusal says in which element. */
function eachWithoutUnsupported(
  list: readonly unknown[],
  unsupported: UnsupportedOptions,
): Result<unknown, ApiRefusal> {
  const kept: unknown[] = [];
  for (const [index, element] of list.entries()) {
    const given = withoutUnsupported(element, unsupported);
    if (!given.ok) return { ok: false, error: { ...given.error, details: { ...given.error.details, index } } };
    kept.push(given.value);
  }
  return ok(kept);
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

export function refuseOption(field: string, value?: string | boolean): Result<never, ApiRefusal> {
  const what = value === undefined ? `Option ${field}` : `${field} ${JSON.stringify(value)}`;
  const details = value === undefined ? { field } : { field, value };
  return refuse("unsupported_option", `${what} is not supported.`, details);
}

function firstUnsupportedValue(
  value: unknown,
  unsupported: readonly (string | boolean)[] | undefined,
): string | boolean | undefined {
  if (unsupported === undefined) return undefined;
  const values: unknown[] = Array.isArray(value) ? value : [value];
  return unsupported.find((one) => values.includes(one));
}
