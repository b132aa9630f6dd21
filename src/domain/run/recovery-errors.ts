/**
 * Which failures are the platform's and which are the run's own (cloudflare-platform.md, A2). Owns the table: a run must
 * not end because the object under it was replaced, and a run that breaks the object must not be started for ever.
 */
export type PlatformErrorKind =
  /** Another instance has the object now, or will: nothing is to be retried in this one. */
  | "superseded"
  /** Storage or a connection of the platform failed; another start may succeed. */
  | "transient"
  /** The isolate's memory is spent. Another start costs the same memory, so it has a budget of its own. */
  | "out_of_memory"
  /** Not the platform's: the run's own failure. */
  | "application";

/** Errors are wrapped on their way; deeper chains than this are no platform error's. */
const CAUSES_MAX = 8;

const SUPERSEDED = /reset because its code was updated|this script has been upgraded|instance is no longer active/i;
const OUT_OF_MEMORY = /exceeded its memory limit/i;
const TRANSIENT = /network connection lost|durable object storage caused object to be reset/i;

interface PlatformMarks {
  readonly message?: unknown;
  readonly cause?: unknown;
  readonly retryable?: unknown;
  readonly overloaded?: unknown;
}

export function classifyPlatformError(error: unknown): PlatformErrorKind {
  let at: unknown = error;
  for (let depth = 0; depth <= CAUSES_MAX && typeof at === "object" && at !== null; depth += 1) {
    const kind = kindOf(at);
    if (kind !== "application") return kind;
    at = (at as PlatformMarks).cause;
  }
  return "application";
}

function kindOf(error: PlatformMarks): PlatformErrorKind {
  const message = typeof error.message === "string" ? error.message : "";
  if (OUT_OF_MEMORY.test(message)) return "out_of_memory";
  if (SUPERSEDED.test(message)) return "superseded";
  // An overloaded object is not helped by more requests.
  if (error.overloaded === true) return "application";
  return error.retryable === true || TRANSIENT.test(message) ? "transient" : "application";
}
