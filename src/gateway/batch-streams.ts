/**
 * The two long answers of a batch: its results as JSON lines and its progress as SSE. Both are pulled by the client:
 * a reader that stops reading costs one page and no polling.
 */
import type { BatchReader } from "../domain/batch/batch-repository.ts";
import { toBatchProgress, toBatchResultLine } from "../protocol/batch-views.ts";
import { HEARTBEAT_COMMENT, HEARTBEAT_MS } from "../protocol/heartbeat.ts";
import { EXPORT_PAGE_ITEMS, PROGRESS_POLL_MS, PROGRESS_POLLS_MAX } from "./bounds.ts";
import type { GatewayDeps } from "./ports.ts";

const encoder = new TextEncoder();
const PULLED = { highWaterMark: 0 } as const;

export interface BatchKey {
  readonly owner: string;
  readonly batchId: string;
}

/** One page of terminal items at a pull, by ordinal. */
export function resultLines(batches: BatchReader, { owner, batchId }: BatchKey): ReadableStream<Uint8Array> {
  let after: number | null = -1;
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    // A page may hold no terminal item and still not be the last: `pull` is called again only after an enqueue.
    while (after !== null) {
      const page = await batches.exportPage(owner, batchId, { afterOrdinal: after, limit: EXPORT_PAGE_ITEMS });
      after = page?.nextAfter ?? null;
      const text = (page?.items ?? []).map((item) => `${JSON.stringify(toBatchResultLine(item))}\n`).join("");
      if (text !== "") return controller.enqueue(encoder.encode(text));
    }
    controller.close();
  };
  return new ReadableStream({ pull }, PULLED);
}

/** A frame at each change, a comment when nothing changes for long, the end with the batch's. */
export function progressEvents(
  { batches, pause }: Pick<GatewayDeps, "batches" | "pause">,
  { owner, batchId }: BatchKey,
): ReadableStream<Uint8Array> {
  let last = "";
  let polls = 0;
  let silentMs = 0;
  let ended = false;
  const next = async (): Promise<string | null> => {
    while (!ended && polls < PROGRESS_POLLS_MAX) {
      if (polls++ > 0) await pause(PROGRESS_POLL_MS);
      const batch = await batches.getBatch(owner, batchId);
      if (batch === undefined) return null;
      ended = batch.status !== "running";
      const data = JSON.stringify(toBatchProgress(batch));
      silentMs = data === last ? silentMs + PROGRESS_POLL_MS : 0;
      if (data !== last) {
        last = data;
        return `event: progress\ndata: ${data}\n\n`;
      }
      if (silentMs >= HEARTBEAT_MS) {
        silentMs = 0;
        return HEARTBEAT_COMMENT;
      }
    }
    return null;
  };
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    const frame = await next();
    if (frame === null) return controller.close();
    controller.enqueue(encoder.encode(frame));
  };
  const cancel = (): void => {
    ended = true;
  };
  return new ReadableStream({ pull, cancel }, PULLED);
}
