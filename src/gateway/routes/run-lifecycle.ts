/** Following a run that is under way, and ending it or one of its delegations. */
import { z } from "zod";
import { cancelActionSchema, cancelReasonSchema } from "../../protocol/runs.ts";
import { answer, empty, fetchThread } from "../answers.ts";
import { addressOf, operation } from "../operation.ts";
import { queryFlag } from "../../protocol/query-flag.ts";
import { runParams } from "../shapes.ts";

const cancel = operation({
  method: "post",
  path: "/threads/:thread_id/runs/:run_id/cancel",
  id: "cancelRun",
  tag: "runs",
  summary: "Ends a run, at work or waiting; what it committed stays, or is taken back with the run.",
  params: runParams,
  query: {
    schema: z.strictObject({
      wait: queryFlag.describe("Answer once the run has ended."),
      action: cancelActionSchema.describe("`interrupt` keeps what the run committed, `rollback` takes it back."),
      reason: cancelReasonSchema.describe("Shown as the run's `cancel_reason`."),
    }),
  },
  responses: { 202: { description: "Being cancelled." }, 204: { description: "Ended." } },
  errors: ["not_found", "not_cancellable"],
  handle: async ({ params, query, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const stub = deps.threads.stub(address.owner, address.thread_id);
    const cancelled = await stub.cancelRun(address, params.run_id, query);
    return answer(cancelled, () => empty(query.wait ? 204 : 202));
  },
});

const cancelTask = operation({
  method: "post",
  path: "/threads/:thread_id/runs/:run_id/tasks/:task_id/cancel",
  id: "cancelTask",
  tag: "runs",
  summary: "Cancels one delegation; the run goes on.",
  params: runParams.extend({ task_id: z.string().min(1).max(128) }),
  responses: { 202: { description: "Being cancelled." } },
  errors: ["not_found"],
  handle: async ({ params, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const stub = deps.threads.stub(address.owner, address.thread_id);
    return answer(await stub.cancelTask(address, params.run_id, params.task_id), () => empty(202));
  },
});

const join = operation({
  method: "get",
  path: "/threads/:thread_id/runs/:run_id/join",
  id: "joinRun",
  tag: "runs",
  summary: "Waits for a run and answers with its final values.",
  params: runParams,
  query: { schema: z.strictObject({ cancel_on_disconnect: queryFlag }) },
  responses: { 200: { description: "Values.", schema: z.record(z.string(), z.unknown()) } },
  errors: ["not_found"],
  handle: async ({ params, query, principal, deps }) => {
    const search = new URLSearchParams({ cancel_on_disconnect: query.cancel_on_disconnect ? "1" : "0" });
    const path = `/runs/${params.run_id}/join?${search.toString()}`;
    return fetchThread(deps.threads, addressOf(principal, params.thread_id), { path });
  },
});

export const runLifecycleOperations = [cancel, cancelTask, join] as const;
