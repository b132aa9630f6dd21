/**
 * Everything of one owner as JSON lines, at the reader's pace: assistants with their versions, then each thread's own export
 * in the order of ids. Owns the bound of one request and the cursor of the next one. Threads pass through untouched.
 *
 * The last line is `owner_end`. It names threads whose lines were cut (deleted meanwhile, or a fault), and the cursor when
 * there are more threads than one request takes.
 */
import type { Principal } from "../domain/trust/principal.ts";
import { fetchThread } from "./answers.ts";
import { addressOf } from "./operation.ts";
import type { GatewayDeps } from "./ports.ts";

/** Each is a request to an object, and a Worker may make 1,000 in answering one of its own. */
export const EXPORTED_THREADS_MAX = 200;

/** Thread ids read at once. */
const EXPORTED_IDS_MAX = 50;

/** Longer than a thread's last line. */
const END_TAIL_BYTES = 1_024;

export const OWNER_EXPORT_VERSION = 1;

const encoder = new TextEncoder();
const toLine = (value: unknown): Uint8Array => encoder.encode(`${JSON.stringify(value)}\n`);

type ExportPorts = Pick<GatewayDeps, "threads" | "owners" | "assistants">;

export interface ExportRange {
  /** The thread behind which it goes on; empty for the start. */
  readonly after: string;
  readonly threadsMax?: number;
}

export function ownerExport(ports: ExportPorts, principal: Principal, range: ExportRange): ReadableStream<Uint8Array> {
  const chunks = ownerChunks(ports, principal, range);
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    const next = await chunks.next();
    if (next.done === true) return controller.close();
    controller.enqueue(next.value);
  };
  const cancel = async () => {
    await chunks.return(undefined);
  };
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 });
}

async function* ownerChunks(
  ports: ExportPorts,
  principal: Principal,
  { after, threadsMax = EXPORTED_THREADS_MAX }: ExportRange,
): AsyncGenerator<Uint8Array, undefined> {
  const { owner } = principal;
  const counts = { assistants: 0, threads: 0 };
  const cut: string[] = [];
  yield toLine({ type: "owner", v: OWNER_EXPORT_VERSION, owner });
  if (after === "") {
    for (const assistant of await ports.assistants.list(owner)) {
      counts.assistants += 1;
      const versions = await ports.assistants.versions(owner, assistant.assistantId);
      yield toLine({ type: "assistant", assistant, versions });
    }
  }
  let last = after;
  let isMore = true;
  while (isMore && counts.threads < threadsMax) {
    const limit = Math.min(EXPORTED_IDS_MAX, threadsMax - counts.threads);
    const ids = await ports.owners.threads(owner, last, limit);
    isMore = ids.length === limit;
    for (const threadId of ids) {
      const isWhole = yield* threadChunks(ports, principal, threadId);
      counts.threads += 1;
      if (!isWhole) cut.push(threadId);
      last = threadId;
    }
  }
  const next = isMore && (await ports.owners.threads(owner, last, 1)).length > 0 ? last : null;
  yield toLine({ type: "owner_end", counts, cut, next });
  return undefined;
}

/** Gives whether the thread's own end was seen. */
async function* threadChunks(
  { threads }: ExportPorts,
  principal: Principal,
  threadId: string,
): AsyncGenerator<Uint8Array, boolean> {
  const answer = await fetchThread(threads, addressOf(principal, threadId), { path: "/export" });
  if (!answer.ok || answer.value.body === null) return false;
  let tail = new Uint8Array();
  try {
    for await (const chunk of answer.value.body) {
      tail = new Uint8Array([...tail, ...chunk.subarray(-END_TAIL_BYTES)].slice(-END_TAIL_BYTES));
      yield chunk;
    }
  } catch {
    // What comes next begins on a line of its own.
    yield encoder.encode("\n");
    return false;
  }
  return /(^|\n)\{"type":"end",[^\n]*\}\n$/.test(new TextDecoder().decode(tail));
}
