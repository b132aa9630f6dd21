import { z } from "zod";
import { listedRunSchema, listRunsQuerySchema, runSchema } from "../../protocol/runs.ts";
import { answer, empty, json } from "../answers.ts";
import { IDEMPOTENCY_HEADER } from "../idempotency.ts";
import { onlyFields } from "../only-fields.ts";
import { addressOf, operation } from "../operation.ts";
import { prepareRun, RUN_BODY, startAndFollow, startInBackground, STREAM_QUERY } from "../run-requests.ts";
import { runParams, threadParams } from "../shapes.ts";

/** Alike in the three ways to start a run on a thread of the client's; what they answer is not. */
const STARTS_RUN = {
  method: "post",
  tag: "runs",
  params: threadParams,
  headers: IDEMPOTENCY_HEADER,
  body: RUN_BODY,
  errors: ["not_found", "thread_busy", "already_exists", "idempotency_conflict", "rate_limited"],
} as const;

const create = operation({
  ...STARTS_RUN,
  path: "/threads/:thread_id/runs",
  id: "createRun",
  summary: "Starts a run and answers at once.",
  responses: { 200: { description: "The run, `pending` or `running`.", schema: runSchema } },
  handle: async (call) => {
    const command = await prepareRun(call, call.params.thread_id);
    if (!command.ok) return command;
    return startInBackground(call, addressOf(call.principal, call.params.thread_id), command.value);
  },
});

const stream = operation({
  ...STARTS_RUN,
  path: "/threads/:thread_id/runs/stream",
  id: "streamRun",
  query: STREAM_QUERY,
  summary: "Starts a run and streams its frames; `Location` is where a dropped stream resumes.",
  responses: { 200: { description: "Server-sent events.", media: "text/event-stream" } },
  handle: async (call) => {
    const command = await prepareRun(call, call.params.thread_id);
    if (!command.ok) return command;
    const address = addressOf(call.principal, call.params.thread_id);
    return startAndFollow(call, address, { command: command.value, how: "stream", namespaces: call.query.namespace });
  },
});

const wait = operation({
  ...STARTS_RUN,
  path: "/threads/:thread_id/runs/wait",
  id: "waitRun",
  summary: "Starts a run and answers with its final values.",
  responses: {
    200: { description: "Values, `__error__` or `__interrupt__`.", schema: z.record(z.string(), z.unknown()) },
  },
  handle: async (call) => {
    const command = await prepareRun(call, call.params.thread_id);
    if (!command.ok) return command;
    const address = addressOf(call.principal, call.params.thread_id);
    return startAndFollow(call, address, { command: command.value, how: "wait" });
  },
});

const list = operation({
  method: "get",
  path: "/threads/:thread_id/runs",
  id: "listRuns",
  tag: "runs",
  summary: "Runs of a thread, newest first.",
  params: threadParams,
  query: { schema: listRunsQuerySchema },
  responses: { 200: { description: "One page.", schema: z.array(listedRunSchema) } },
  errors: ["not_found"],
  handle: async ({ params, query, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const { select, ...asked } = query;
    const runs = await deps.threads.stub(address.owner, address.thread_id).listRuns(address, asked);
    return answer(runs, (page) => json(page.map((each) => onlyFields(each, select))));
  },
});

const get = operation({
  method: "get",
  path: "/threads/:thread_id/runs/:run_id",
  id: "getRun",
  tag: "runs",
  summary: "One run.",
  params: runParams,
  responses: { 200: { description: "The run.", schema: runSchema } },
  errors: ["not_found"],
  handle: async ({ params, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const run = await deps.threads.stub(address.owner, address.thread_id).getRun(address, params.run_id);
    return answer(run, (found) => json(found));
  },
});

const remove = operation({
  method: "delete",
  path: "/threads/:thread_id/runs/:run_id",
  id: "deleteRun",
  tag: "runs",
  summary: "Deletes a finished run.",
  params: runParams,
  responses: { 204: { description: "Deleted." } },
  errors: ["not_found", "thread_busy"],
  handle: async ({ params, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const deleted = await deps.threads.stub(address.owner, address.thread_id).deleteRun(address, params.run_id);
    return answer(deleted, () => empty(204));
  },
});

export const runOperations = [create, stream, wait, list, get, remove] as const;
