import { z } from "zod";
import {
  countThreadsBodySchema,
  getThreadQuerySchema,
  createThreadBodySchema,
  listedThreadSchema,
  patchThreadBodySchema,
  pruneThreadsBodySchema,
  searchThreadsBodySchema,
  threadSchema,
  UNLISTED_THREAD_VALUES,
  UNSUPPORTED_THREAD_OPTIONS,
} from "../../protocol/threads.ts";
import { tokenUsageSchema } from "../../protocol/token-usage.ts";
import { answer, empty, json } from "../answers.ts";
import { JSON_BODY_BYTES_MAX, RUN_BODY_BYTES_MAX } from "../bounds.ts";
import { addressOf, operation } from "../operation.ts";
import { toListedThread } from "../listed-thread.ts";
import { paginationHeaders } from "../pagination.ts";
import { copyThread } from "../thread-copy.ts";
import { queryFlag } from "../../protocol/query-flag.ts";
import { threadParams } from "../shapes.ts";

const THREAD = { description: "The thread.", schema: threadSchema } as const;

const create = operation({
  method: "post",
  path: "/threads",
  id: "createThread",
  tag: "threads",
  summary: "Creates a thread, with the states before it where they are given.",
  body: {
    schema: createThreadBodySchema,
    bytesMax: RUN_BODY_BYTES_MAX,
  },
  responses: { 200: THREAD },
  errors: ["already_exists"],
  handle: async ({ body, principal, deps }) => {
    const address = addressOf(principal, body.thread_id ?? deps.newId());
    const created = await deps.threads.stub(address.owner, address.thread_id).createThread(address, body);
    return answer(created, (thread) => json(thread));
  },
});

const search = operation({
  method: "post",
  path: "/threads/search",
  id: "searchThreads",
  tag: "threads",
  summary: "Lists the caller's threads; `values` are null here, state is read one thread at a time.",
  body: {
    schema: searchThreadsBodySchema,
    bytesMax: JSON_BODY_BYTES_MAX,
    unsupported: { options: UNSUPPORTED_THREAD_OPTIONS.search, values: UNLISTED_THREAD_VALUES },
  },
  responses: { 200: { description: "One page.", schema: z.array(listedThreadSchema) } },
  handle: async ({ body, principal, deps }) => {
    const { threads, total } = await deps.threadSearch.search(principal.owner, body);
    const listed = threads.map((thread) => toListedThread(thread, body));
    return json(listed, { headers: paginationHeaders({ offset: body.offset, limit: body.limit, total }) });
  },
});

const count = operation({
  method: "post",
  path: "/threads/count",
  id: "countThreads",
  tag: "threads",
  summary: "Counts the caller's threads.",
  body: {
    schema: countThreadsBodySchema,
    bytesMax: JSON_BODY_BYTES_MAX,
    unsupported: { options: UNSUPPORTED_THREAD_OPTIONS.count },
  },
  responses: { 200: { description: "How many.", schema: z.int() } },
  handle: async ({ body, principal, deps }) => json(await deps.threadSearch.count(principal.owner, body)),
});

const prune = operation({
  method: "post",
  path: "/threads/prune",
  id: "pruneThreads",
  tag: "threads",
  summary: "Deletes threads, or all of their checkpoints but the newest; unknown and busy ones are passed over.",
  body: { schema: pruneThreadsBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 200: { description: "How many.", schema: z.object({ pruned_count: z.int() }) } },
  handle: async ({ body, principal, deps }) => {
    let pruned = 0;
    for (const threadId of new Set(body.thread_ids)) {
      const address = addressOf(principal, threadId);
      const stub = deps.threads.stub(address.owner, address.thread_id);
      const done = await (body.strategy === "delete" ? stub.deleteThread(address) : stub.pruneThread(address));
      if (done.ok) pruned += 1;
      else if (done.error.code !== "not_found" && done.error.code !== "thread_busy") return done;
    }
    return json({ pruned_count: pruned });
  },
});

const copy = operation({
  method: "post",
  path: "/threads/:thread_id/copy",
  id: "copyThread",
  tag: "threads",
  summary: "Makes a thread with the same states, files and metadata; refused while a run is active.",
  params: threadParams,
  responses: { 200: { ...THREAD, description: "The new thread." } },
  errors: ["not_found", "thread_busy", "too_large"],
  handle: async ({ params, principal, deps }) => {
    const copied = await copyThread(deps, addressOf(principal, params.thread_id), addressOf(principal, deps.newId()));
    return answer(copied, (thread) => json(thread));
  },
});

const tokenUsage = operation({
  method: "get",
  path: "/threads/:thread_id/token-usage",
  id: "getTokenUsage",
  tag: "threads",
  summary: "What the thread's runs used, by model and caller.",
  params: threadParams,
  query: { schema: z.strictObject({ include_active: queryFlag }) },
  responses: { 200: { description: "The sums.", schema: tokenUsageSchema } },
  errors: ["not_found"],
  handle: async ({ params, query, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const used = await deps.threads.stub(address.owner, address.thread_id).tokenUsage(address, query);
    return answer(used, (sums) => json(sums));
  },
});

const get = operation({
  method: "get",
  path: "/threads/:thread_id",
  id: "getThread",
  tag: "threads",
  summary: "One thread with its values and interrupts.",
  params: threadParams,
  query: { schema: getThreadQuerySchema },
  responses: { 200: THREAD },
  errors: ["not_found"],
  handle: async ({ params, query, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const found = await deps.threads.stub(address.owner, address.thread_id).getThread(address, query.include);
    return answer(found, (thread) => json(thread));
  },
});

const patch = operation({
  method: "patch",
  path: "/threads/:thread_id",
  id: "patchThread",
  tag: "threads",
  summary: "Merges metadata, key by key, and sets how long the thread lives.",
  params: threadParams,
  headers: { Prefer: "`return=minimal` answers 204 without a body." },
  body: {
    schema: patchThreadBodySchema,
    bytesMax: JSON_BODY_BYTES_MAX,
  },
  responses: { 200: THREAD, 204: { description: "Patched." } },
  errors: ["not_found"],
  handle: async ({ params, body, principal, request, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const patched = await deps.threads
      .stub(address.owner, address.thread_id)
      .patchThread(address, body.metadata ?? {}, body.ttl);
    const minimal = /\breturn=minimal\b/.test(request.headers.get("prefer") ?? "");
    return answer(patched, (thread) => (minimal ? empty(204) : json(thread)));
  },
});

const remove = operation({
  method: "delete",
  path: "/threads/:thread_id",
  id: "deleteThread",
  tag: "threads",
  summary: "Deletes a thread with everything it holds.",
  params: threadParams,
  responses: { 204: { description: "Deleted." } },
  errors: ["not_found"],
  handle: async ({ params, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const deleted = await deps.threads.stub(address.owner, address.thread_id).deleteThread(address);
    return answer(deleted, () => empty(204));
  },
});

export const threadOperations = [create, search, count, prune, copy, get, patch, remove, tokenUsage] as const;
