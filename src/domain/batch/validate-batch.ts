/**
 * Whether a batch may be stored at all. Owns every limit of a submit and the resolved windows; stores nothing.
 * A violation names the item (by place and key) and the limit it broke. An explicit value is kept or refused, never
 * lowered in silence, and an explicit 0 is a violation, not a default.
 */
import { err, ok, type Result } from "../shared/result.ts";
import {
  BATCH_FILES_MAX,
  BATCH_TITLE_CHARS_MAX,
  ITEM_ATTEMPTS_MAX,
  ITEM_KEY_CHARS_MAX,
  ITEM_PROMPT_CHARS_MAX,
  ITEM_TIMEOUT_SECONDS_MAX,
  type BatchLimits,
} from "./batch-limits.ts";

export interface BatchItemDraft {
  readonly key: string;
  readonly prompt: string;
}

export interface BatchDraft {
  readonly title: string;
  readonly subagentType: string;
  readonly items: readonly BatchItemDraft[];
  readonly files?: readonly string[] | undefined;
  readonly maxLiveItems?: number | undefined;
  readonly maxRunningItems?: number | undefined;
  readonly maxAttempts?: number | undefined;
  readonly timeoutSeconds?: number | undefined;
}

/** A draft that passed, with every default resolved. */
export interface BatchPlan {
  readonly title: string;
  readonly subagentType: string;
  readonly items: readonly BatchItemDraft[];
  readonly files: readonly string[];
  readonly maxLiveItems: number;
  readonly maxRunningItems: number;
  readonly maxAttempts: number;
  readonly timeoutSeconds: number;
}

export interface BatchViolation {
  readonly reason: "batch_limit";
  /** As the wire names it: `title`, `items[3].key`, `max_live_items`. */
  readonly field: string;
  readonly message: string;
}

/** `agentTimeoutSeconds` is the resolved subagent's own; the item's budget is never longer than it. */
export function validateBatch(
  draft: BatchDraft,
  limits: BatchLimits,
  agentTimeoutSeconds: number,
): Result<BatchPlan, BatchViolation> {
  const title = draft.title.trim();
  const files = draft.files ?? [];
  const items = draft.items.map((item) => ({ key: item.key.trim(), prompt: item.prompt }));
  const violation =
    textViolation("title", title, BATCH_TITLE_CHARS_MAX) ??
    itemsViolation(items, limits.maxItems) ??
    filesViolation(files);
  if (violation !== undefined) return err(violation);
  const windows = resolveWindows(draft, limits, agentTimeoutSeconds);
  return windows.ok ? ok({ title, subagentType: draft.subagentType, items, files, ...windows.value }) : windows;
}

function itemsViolation(items: readonly BatchItemDraft[], maxItems: number): BatchViolation | undefined {
  if (items.length === 0) return violate("items", "must hold at least 1 item");
  if (items.length > maxItems) return violate("items", `has ${items.length} items, the limit is ${maxItems}`);
  const places = new Map<string, number>();
  for (const [place, item] of items.entries()) {
    const named = `items[${place}]`;
    const broken =
      textViolation(`${named}.key`, item.key, ITEM_KEY_CHARS_MAX) ??
      textViolation(`${named}.prompt`, item.prompt, ITEM_PROMPT_CHARS_MAX, ` (key "${item.key}")`);
    if (broken !== undefined) return broken;
    const earlier = places.get(item.key);
    if (earlier !== undefined) return violate(`${named}.key`, `"${item.key}" repeats the key of items[${earlier}]`);
    places.set(item.key, place);
  }
  return undefined;
}

function textViolation(field: string, text: string, max: number, whose = ""): BatchViolation | undefined {
  if (text.trim() === "") return violate(field, `is empty${whose}`);
  if (text.length > max) return violate(field, `has ${text.length} characters${whose}, the limit is ${max}`);
  // Half of a surrogate pair comes back from SQL as another text than the one that was stored.
  return text.isWellFormed() ? undefined : violate(field, `is not well-formed Unicode${whose}`);
}

function filesViolation(files: readonly string[]): BatchViolation | undefined {
  if (files.length > BATCH_FILES_MAX) {
    return violate("files", `names ${files.length} files, the limit is ${BATCH_FILES_MAX}`);
  }
  const repeated = files.find((path, place) => files.indexOf(path) !== place);
  return repeated === undefined ? undefined : violate("files", `names "${repeated}" twice`);
}

type Windows = Pick<BatchPlan, "maxLiveItems" | "maxRunningItems" | "maxAttempts" | "timeoutSeconds">;

function resolveWindows(
  draft: BatchDraft,
  limits: BatchLimits,
  agentTimeoutSeconds: number,
): Result<Windows, BatchViolation> {
  const timeoutMax = Math.min(agentTimeoutSeconds, ITEM_TIMEOUT_SECONDS_MAX);
  const violation =
    rangeViolation("max_live_items", draft.maxLiveItems, limits.maxLiveItems) ??
    rangeViolation("max_running_items", draft.maxRunningItems, limits.maxRunningItems) ??
    rangeViolation("max_attempts", draft.maxAttempts, limits.maxAttempts ?? ITEM_ATTEMPTS_MAX) ??
    rangeViolation("timeout_seconds", draft.timeoutSeconds, timeoutMax);
  if (violation !== undefined) return err(violation);
  const { maxLiveItems: live, maxRunningItems: running } = draft;
  if (live !== undefined && running !== undefined && running > live) {
    return err(violate("max_running_items", `is ${running}, more than max_live_items ${live}`));
  }
  return ok({
    maxLiveItems: live ?? Math.max(limits.defaultLiveItems, running ?? 0),
    maxRunningItems: running ?? Math.min(limits.defaultRunningItems, live ?? limits.defaultLiveItems),
    maxAttempts: draft.maxAttempts ?? limits.defaultAttempts,
    timeoutSeconds: draft.timeoutSeconds ?? timeoutMax,
  });
}

function rangeViolation(field: string, value: number | undefined, max: number): BatchViolation | undefined {
  if (value === undefined || (Number.isInteger(value) && value >= 1 && value <= max)) return undefined;
  return violate(field, `is ${value}, the range is 1 to ${max}`);
}

function violate(field: string, complaint: string): BatchViolation {
  return { reason: "batch_limit", field, message: `${field} ${complaint}` };
}
