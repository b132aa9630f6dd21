/**
 * A thread whole, as JSON lines that the reader's pace pulls out of the object: the thread, its runs, its events, the states
 * of its kept checkpoints, its files, its batches with the results of their items, and an end that counts them. Owns the order of the lines and what is read at once: one
 * page of rows, one state or one file.
 *
 * - The last line is the end. A stream without it was cut: the thread was deleted meanwhile, or a fault came between.
 * - It is no snapshot: what a run does meanwhile may be in a later line and not in an earlier one.
 */
import { Buffer } from "node:buffer";
import { D1RunEventReader } from "../platform/d1/run-event-reader.ts";
import { WORKSPACE_ROOT } from "../domain/workspace/paths.ts";
import { BatchReads } from "../platform/d1/batch-reads.ts";
import { toBatch, toBatchResultLine } from "../protocol/batch-views.ts";
import { toRun } from "./run-view.ts";
import type { ThreadRuntime } from "./thread-runtime.ts";

/** Version of the lines. */
export const THREAD_EXPORT_VERSION = 1;

/** Runs and events read at once; a page of events has a bound of bytes too. */
const EXPORT_ROWS_MAX = 200;

/** Of a file in one line, divisible by 3: parts of base64 can be put together as they are. */
const EXPORT_FILE_PART_BYTES = 750_000;

type Line = Readonly<Record<string, unknown>> & { readonly type: string };

const encoder = new TextEncoder();

export function threadExport(runtime: ThreadRuntime): ReadableStream<Uint8Array> {
  const lines = exportLines(runtime);
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    try {
      const next = await lines.next();
      if (next.done === true) return controller.close();
      controller.enqueue(encoder.encode(`${JSON.stringify(next.value)}\n`));
    } catch (fault) {
      // Deleted under the export: no fault, and the end that is missing says so.
      if (!runtime.context.isClosing) throw fault;
      controller.close();
    }
  };
  return new ReadableStream(
    {
      pull,
      cancel: async () => {
        await lines.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

async function* exportLines(runtime: ThreadRuntime): AsyncGenerator<Line, undefined> {
  const counts: Record<string, number> = {
    run: 0,
    event: 0,
    state: 0,
    directory: 0,
    file: 0,
    batch: 0,
    batch_result: 0,
  };
  const threadId = runtime.context.threadId;
  for await (const line of partsOf(runtime)) {
    if (line.type in counts) counts[line.type] = (counts[line.type] ?? 0) + 1;
    yield line;
  }
  yield { type: "end", thread_id: threadId, counts };
  return undefined;
}

async function* partsOf(runtime: ThreadRuntime): AsyncGenerator<Line> {
  const thread = await runtime.threads.get();
  if (!thread.ok) throw new Error(thread.error.message);
  const { values: _values, interrupts: _interrupts, ...facts } = thread.value;
  yield { type: "thread", v: THREAD_EXPORT_VERSION, thread: facts };
  yield* runsOf(runtime);
  yield* eventsOf(runtime);
  yield* statesOf(runtime);
  yield* filesOf(runtime);
  yield* batchesOf(runtime);
}

/** Newest first, by id: a run that comes or goes meanwhile moves no other one out of its page. */
async function* runsOf({ context }: ThreadRuntime): AsyncGenerator<Line> {
  for (let before: string | undefined; ;) {
    const page = context.runs.before(before, EXPORT_ROWS_MAX);
    for (const run of page) yield { type: "run", run: toRun(run, context.threadId) };
    if (page.length < EXPORT_ROWS_MAX) return;
    before = page.at(-1)?.runId;
  }
}

async function* eventsOf({ context }: ThreadRuntime): AsyncGenerator<Line> {
  await context.flush.flush();
  const reader = new D1RunEventReader(context.deps.db);
  const { owner, threadId } = context.thread();
  for (let after: number | null = 0; after !== null;) {
    const query = { after_seq: after, limit: EXPORT_ROWS_MAX };
    const { rows, next }: { rows: readonly unknown[]; next: number | null } = await reader.listEvents(
      { owner, thread_id: threadId },
      query,
    );
    for (const event of rows) yield { type: "event", event };
    after = next;
  }
}

/** Of the root's line and its branches, newest first. */
async function* statesOf({ state }: ThreadRuntime): AsyncGenerator<Line> {
  for (let before: string | undefined; ;) {
    const page = await state.history({ limit: 1, ...(before === undefined ? {} : { before }) });
    if (!page.ok) throw new Error(page.error.message);
    const [found] = page.value;
    if (found === undefined) return;
    yield { type: "state", state: found };
    before = (found.checkpoint as { checkpoint_id?: string } | undefined)?.checkpoint_id;
    if (before === undefined) return;
  }
}

async function* filesOf({ context }: ThreadRuntime): AsyncGenerator<Line> {
  const directories = [WORKSPACE_ROOT];
  for (let path = directories.pop(); path !== undefined; path = directories.pop()) {
    const listed = context.workspace.list(path);
    // Removed since its parent was listed.
    if (!listed.ok) continue;
    for (const entry of listed.value) {
      const at = { path: entry.path, modified_at: new Date(entry.modifiedAt).toISOString() };
      if (entry.kind === "directory") {
        yield { type: "directory", ...at };
        directories.push(entry.path);
        continue;
      }
      const found = context.workspace.get(entry.path);
      if (found.ok && found.value.kind === "file") yield* fileLines(at, found.value.bytes);
    }
  }
}

/** `file` first, then what does not fit into its line. */
function* fileLines(at: { readonly path: string; readonly modified_at: string }, bytes: Uint8Array): Generator<Line> {
  const parts = Math.max(1, Math.ceil(bytes.byteLength / EXPORT_FILE_PART_BYTES));
  for (let part = 0; part < parts; part += 1) {
    const from = part * EXPORT_FILE_PART_BYTES;
    const content = Buffer.from(bytes.subarray(from, from + EXPORT_FILE_PART_BYTES)).toString("base64");
    yield part === 0
      ? { type: "file", ...at, size: bytes.byteLength, parts, content }
      : { type: "file_part", path: at.path, part, content };
  }
}

/** Each by its id, with its ended items behind it. */
async function* batchesOf({ context }: ThreadRuntime): AsyncGenerator<Line> {
  const reads = new BatchReads(context.deps.db);
  const { owner, threadId } = context.thread();
  for (let after: string | undefined = ""; after !== undefined;) {
    const page = await reads.listOfThread({ owner, thread_id: threadId }, after, EXPORT_ROWS_MAX);
    for (const view of page) {
      yield { type: "batch", batch: toBatch(view) };
      yield* resultsOf(reads, { owner, batchId: view.batchId });
    }
    after = page.at(-1)?.batchId;
  }
}

async function* resultsOf(
  reads: BatchReads,
  { owner, batchId }: { readonly owner: string; readonly batchId: string },
): AsyncGenerator<Line> {
  for (let afterOrdinal: number | null = -1; afterOrdinal !== null;) {
    const page = await reads.exportPage(owner, batchId, { afterOrdinal, limit: EXPORT_ROWS_MAX });
    if (page === undefined) return;
    for (const item of page.items) yield { type: "batch_result", batch_id: batchId, result: toBatchResultLine(item) };
    afterOrdinal = page.nextAfter;
  }
}
