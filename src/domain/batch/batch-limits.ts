/**
 * The bounds of a batch (delegation-behaviour 1.9; contracts, "Batches"). Owns the fixed ones; those an operator sets
 * arrive as `BatchLimits`.
 */

export const BATCH_TITLE_CHARS_MAX = 256;
export const ITEM_KEY_CHARS_MAX = 128;
/** 100,000 characters are at most 600 KB of JSON, so one item always fits one insert parameter. */
export const ITEM_PROMPT_CHARS_MAX = 100_000;
export const BATCH_FILES_MAX = 100;
/** All files together: a claim loads them into a consumer that has 128 MB. */
export const BATCH_FILES_BYTES_MAX = 8 * 1_024 * 1_024;
/** A consumer invocation lives 15 minutes: 13 for the item, the rest for claiming and settling. */
export const ITEM_TIMEOUT_SECONDS_MAX = 780;
/** The range of `max_attempts` in configuration; a request may not ask for more either. */
export const ITEM_ATTEMPTS_MAX = 10;
/** Why an attempt failed is a sentence or a short stack, not a document. */
export const ITEM_ERROR_CHARS_MAX = 2_000;
/**
 * Of the stored JSON: room for 1 MiB of files as base64, below D1's 2 MB row. Text that escapes to more fails the item
 * by name.
 */
export const ITEM_OUTPUTS_JSON_BYTES_MAX = 1_900_000;
/** Slots one wake may carry: the upper bound of `max_running`. */
export const WAKE_SLOTS_MAX = 64;

/** What `subagent_batches` in the configuration allows, translated at the rim. */
export interface BatchLimits {
  readonly maxItems: number;
  readonly defaultLiveItems: number;
  readonly maxLiveItems: number;
  readonly defaultRunningItems: number;
  readonly maxRunningItems: number;
  /** Where the request names none. */
  readonly defaultAttempts: number;
  /** Below `ITEM_ATTEMPTS_MAX` where an attempt may not be repeated. */
  readonly maxAttempts?: number;
}
