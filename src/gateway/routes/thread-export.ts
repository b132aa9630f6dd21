/** `/threads/{t}/export`: the thread as JSON lines. What stands in them is the object's (`thread-export.ts` there). */
import { fetchThread } from "../answers.ts";
import { addressOf, operation } from "../operation.ts";
import { threadParams } from "../shapes.ts";

const exportThread = operation({
  method: "get",
  path: "/threads/:thread_id/export",
  id: "exportThread",
  tag: "threads",
  summary: "The thread as JSON lines: runs, events, states, files, batches; the last line counts them.",
  params: threadParams,
  responses: { 200: { description: "JSON lines.", media: "application/jsonl" } },
  errors: ["not_found"],
  handle: async ({ params, principal, deps }) =>
    fetchThread(deps.threads, addressOf(principal, params.thread_id), { path: "/export" }),
});

export const threadExportOperations = [exportThread] as const;
