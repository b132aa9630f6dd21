import { z } from "zod";
import { type Result, ok } from "../../domain/shared/result.ts";
import type { BatchView } from "../../domain/batch/batch.ts";
import { toBatch, toBatchItem } from "../../protocol/batch-views.ts";
import {
  batchItemSchema,
  batchResultLineSchema,
  batchSchema,
  createBatchBodySchema,
  listItemsQuerySchema,
} from "../../protocol/batches.ts";
import type { ApiRefusal } from "../../protocol/errors.ts";
import { answer, json } from "../answers.ts";
import { progressEvents, resultLines } from "../batch-streams.ts";
import { BATCH_BODY_BYTES_MAX } from "../bounds.ts";
import { refuse } from "../errors.ts";
import { idempotencyKey } from "../idempotency.ts";
import { addressOf, type Answer, type Call, operation } from "../operation.ts";
import { batchParams, threadParams } from "../shapes.ts";

type BatchCall = Pick<Call<{ batch_id: string }, unknown, unknown>, "params" | "principal" | "deps">;

/** The caller's batch; another owner's is missing like any other (P7). */
async function ownBatch({ params, principal, deps }: BatchCall): Promise<Result<BatchView, ApiRefusal>> {
  const batch = await deps.batches.getBatch(principal.owner, params.batch_id);
  return batch === undefined ? refuse("not_found", "Batch not found") : ok(batch);
}

const create = operation({
  method: "post",
  path: "/threads/:thread_id/batches",
  id: "createBatch",
  tag: "batches",
  summary: "Accepts a batch of items for subagents; all of it is stored, or nothing.",
  params: threadParams,
  headers: { "Idempotency-Key": "The same key and body answer the same batch; another body is a conflict." },
  body: { schema: createBatchBodySchema, bytesMax: BATCH_BODY_BYTES_MAX },
  responses: {
    201: { description: "Accepted.", schema: batchSchema },
    200: { description: "Accepted before, under the same key.", schema: batchSchema },
  },
  errors: ["not_found", "idempotency_conflict", "forbidden"],
  handle: async ({ params, body, principal, request, deps }) => {
    const key = idempotencyKey(request.headers);
    if (!key.ok) return key;
    const address = addressOf(principal, params.thread_id);
    const accepted = await deps.threads.stub(address.owner, address.thread_id).createBatch(address, body, key.value);
    return answer(accepted, ({ batch, created }) => json(batch, { status: created ? 201 : 200 }));
  },
});

const get = operation({
  method: "get",
  path: "/batches/:batch_id",
  id: "getBatch",
  tag: "batches",
  summary: "A batch and its counts.",
  params: batchParams,
  responses: { 200: { description: "The batch.", schema: batchSchema } },
  errors: ["not_found"],
  handle: async (call) => answer(await ownBatch(call), (batch) => json(toBatch(batch))),
});

const items = operation({
  method: "get",
  path: "/batches/:batch_id/items",
  id: "listBatchItems",
  tag: "batches",
  summary: "Items by ordinal, with previews of their results.",
  params: batchParams,
  query: { schema: listItemsQuerySchema },
  responses: { 200: { description: "One page.", schema: z.array(batchItemSchema) } },
  errors: ["not_found"],
  handle: async ({ params, query, principal, deps }) => {
    const { status, after_ordinal: afterOrdinal, limit } = query;
    const wanted = { status, afterOrdinal, limit, previewChars: deps.previewChars };
    const page = await deps.batches.listItems(principal.owner, params.batch_id, wanted);
    return page === undefined ? refuse("not_found", "Batch not found") : json(page.map(toBatchItem));
  },
});

const cancel = operation({
  method: "post",
  path: "/batches/:batch_id/cancel",
  id: "cancelBatch",
  tag: "batches",
  summary: "Cancels every item that has not ended.",
  params: batchParams,
  responses: { 200: { description: "The batch as it now stands.", schema: batchSchema } },
  errors: ["not_found"],
  handle: async (call) => {
    const batch = await ownBatch(call);
    if (!batch.ok) return batch;
    const address = addressOf(call.principal, batch.value.threadId);
    const stub = call.deps.threads.stub(address.owner, address.thread_id);
    return answer(await stub.cancelBatch(address, batch.value.batchId), (cancelled) => json(cancelled));
  },
});

async function streamOf(call: BatchCall, media: string, open: () => ReadableStream): Promise<Answer> {
  const batch = await ownBatch(call);
  if (!batch.ok) return batch;
  const headers = { "content-type": media, "cache-control": "no-cache" };
  return ok(new Response(open(), { headers }));
}

const results = operation({
  method: "get",
  path: "/batches/:batch_id/results.jsonl",
  id: "exportBatch",
  tag: "batches",
  summary: "Ended items by ordinal, one JSON object a line.",
  params: batchParams,
  responses: { 200: { description: "JSON lines.", schema: batchResultLineSchema, media: "application/jsonl" } },
  errors: ["not_found"],
  handle: async (call) => {
    const key = { owner: call.principal.owner, batchId: call.params.batch_id };
    return streamOf(call, "application/jsonl", () => resultLines(call.deps.batches, key));
  },
});

const events = operation({
  method: "get",
  path: "/batches/:batch_id/events",
  id: "streamBatchProgress",
  tag: "batches",
  summary: "`progress` events at each change, until the batch ends.",
  params: batchParams,
  responses: { 200: { description: "Server-sent events.", media: "text/event-stream" } },
  errors: ["not_found"],
  handle: async (call) => {
    const key = { owner: call.principal.owner, batchId: call.params.batch_id };
    return streamOf(call, "text/event-stream", () => progressEvents(call.deps, key));
  },
});

export const batchOperations = [create, get, items, cancel, results, events] as const;
