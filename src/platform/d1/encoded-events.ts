/**
 * Run events as JSON parameters for one `json_each` insert: packs rows into parameters under the byte bound and cuts an
 * event that would not fit a row. Owns no SQL. Invariant: every event given comes out exactly once, in order, whatever
 * its content, so that one odd event can never hold up the outbox behind it.
 */
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import type { RunEvent } from "../../protocol/run-events.ts";

/** One `json_each` parameter. D1 refuses values over 2 MB; half of that leaves room for the escapes of nested JSON. */
const EVENT_PARAMETER_BYTES_MAX = 1_000_000;

/** An encoded event past this keeps a preview only: it must fit one parameter and one D1 row. */
const EVENT_BYTES_MAX = 900_000;

/** What a cut event still shows of its content. */
const CUT_PREVIEW_CHARS = 10_000;

const encoder = new TextEncoder();

/** JSON texts, each an array of `[seq, run_id, event_type, category, content, metadata, created_at]`. */
export function encodeEvents(events: readonly RunEvent[]): string[] {
  const parameters: string[] = [];
  let rows: string[] = [];
  let bytes = 2;
  for (const event of events) {
    const row = encodeBounded(event);
    const size = encoder.encode(row).length + 1;
    if (rows.length > 0 && bytes + size > EVENT_PARAMETER_BYTES_MAX) {
      parameters.push(`[${rows.join(",")}]`);
      rows = [];
      bytes = 2;
    }
    rows.push(row);
    bytes += size;
  }
  if (rows.length > 0) parameters.push(`[${rows.join(",")}]`);
  return parameters;
}

function encodeBounded(event: RunEvent): string {
  const row = encodeRow(event);
  const size = encoder.encode(row).length;
  return size <= EVENT_BYTES_MAX ? row : encodeRow(cutEvent(event, size));
}

/**
 * Content and metadata travel as strings inside the JSON: SQLite then never parses them here, so neither their depth
 * (its parser stops at 1,000) nor a NUL in them can fail the insert.
 */
function encodeRow(event: RunEvent): string {
  return JSON.stringify([
    event.seq,
    event.run_id,
    event.event_type,
    event.category,
    JSON.stringify(event.content ?? null),
    JSON.stringify(event.metadata),
    event.created_at,
  ]);
}

function cutEvent(event: RunEvent, size: number): RunEvent {
  const taskId = event.metadata["task_id"];
  return {
    ...event,
    content: UTF16_UNITS.first(JSON.stringify(event.content ?? null), CUT_PREVIEW_CHARS),
    metadata: {
      ...(typeof taskId === "string" ? { task_id: taskId } : {}),
      content_truncated: true,
      original_byte_length: size,
    },
  };
}
