/** A thread as a list shows it: the fields that were selected, and the places of its metadata that were asked for. */
import { onlyFields } from "./only-fields.ts";
import type { ListedThread, SearchThreadsBody, Thread } from "../protocol/threads.ts";

export function toListedThread(thread: Thread, { select, extract }: SearchThreadsBody): ListedThread {
  const shown: ListedThread = onlyFields(thread, select);
  if (extract === undefined) return shown;
  const places = Object.entries(extract).map(([name, path]) => [name, valueAt(thread.metadata, path)] as const);
  return { ...shown, extracted: Object.fromEntries(places) };
}

/** `null` where nothing is. `path` begins with `metadata` and has passed the body's shape. */
function valueAt(metadata: Readonly<Record<string, unknown>>, path: string): unknown {
  let value: unknown = metadata;
  for (const [segment] of path.slice("metadata".length).matchAll(/[^.[\]]+/g)) {
    if (Array.isArray(value)) value = (value as unknown[]).at(Number(segment));
    else if (typeof value === "object" && value !== null && Object.hasOwn(value, segment)) {
      value = (value as Record<string, unknown>)[segment];
    } else return null;
  }
  return value ?? null;
}
