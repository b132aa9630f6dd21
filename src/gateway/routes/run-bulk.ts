/** Many runs with one request: starting stateless ones, all or none, and ending runs by id or by status. */
import { z } from "zod";
import { ok, type Result } from "../../domain/shared/result.ts";
import type { ApiRefusal } from "../../protocol/errors.ts";
import {
  cancelActionSchema,
  cancelReasonSchema,
  cancelRunsBodySchema,
  createRunBodySchema,
  type CreateRunBody,
  type Run,
  runSchema,
} from "../../protocol/runs.ts";
import type { CancelRunsQuery, RunCommand, ThreadAddress } from "../../protocol/thread-rpc.ts";
import { searchThreadsBodySchema, STATELESS_MARK } from "../../protocol/threads.ts";
import { empty, json } from "../answers.ts";
import { CANCEL_THREADS_MAX, JSON_BODY_BYTES_MAX, RUNS_PER_BATCH_MAX } from "../bounds.ts";
import { refuse } from "../errors.ts";
import { addressOf, type Call, operation } from "../operation.ts";
import { RUN_BODY } from "../run-requests.ts";
import { toRunCommand } from "../run-command.ts";
import { refuseOption } from "../unsupported.ts";

type BatchCall = Pick<Call<undefined, undefined, CreateRunBody[]>, "body" | "deps" | "principal" | "request">;

interface PlannedRun {
  readonly address: ThreadAddress;
  readonly command: RunCommand;
}

/**
 * `createBatch` of the SDK sends options under its own camelCase names, and the assistant's id under both: they are read
 * as what they mean. One that is given twice with two values is left, and refused as the unknown field it is.
 */
function withWireNames(element: unknown): unknown {
  if (typeof element !== "object" || element === null || Array.isArray(element)) return element;
  const given = element as Record<string, unknown>;
  const renamed = Object.entries(given).map(([name, value]) => {
    const wireName = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const clashes = wireName !== name && Object.hasOwn(given, wireName) && given[wireName] !== value;
    return [clashes ? name : wireName, value] as const;
  });
  return Object.fromEntries(renamed);
}

const createBatch = operation({
  method: "post",
  path: "/runs/batch",
  id: "createRunBatch",
  tag: "runs",
  summary: "Starts runs, each on a thread of its own; all of them, or none when one is refused.",
  body: {
    ...RUN_BODY,
    schema: z.array(createRunBodySchema).min(1).max(RUNS_PER_BATCH_MAX),
    respell: (json) => (Array.isArray(json) ? json.map(withWireNames) : json),
  },
  responses: { 200: { description: "The runs, in the order of the request.", schema: z.array(runSchema) } },
  errors: ["not_found"],
  handle: async (call) => {
    if (call.request.headers.has("idempotency-key")) return refuseOption("Idempotency-Key");
    const planned = await planRuns(call);
    if (!planned.ok) return planned;
    const started = await startAll(call, planned.value);
    return started.ok ? json(started.value) : started;
  },
});

/** Every run as its object would take it: nothing has started when one is refused. */
async function planRuns({ body, deps, principal, request }: BatchCall): Promise<Result<PlannedRun[], ApiRefusal>> {
  const caller = { owner: principal.owner, headers: request.headers };
  const commands = await Promise.all(
    body.map((run) => toRunCommand(deps, { ...run, if_not_exists: "create" }, caller)),
  );
  const planned: PlannedRun[] = [];
  for (const [index, command] of commands.entries()) {
    if (!command.ok) return at(index, command.error);
    planned.push({ address: { ...addressOf(principal, deps.newId()), stateless: true }, command: command.value });
  }
  const checks = await Promise.all(
    planned.map(({ address, command }) =>
      deps.threads.stub(address.owner, address.thread_id).checkRun(address, command),
    ),
  );
  for (const [index, check] of checks.entries()) if (!check.ok) return at(index, check.error);
  return ok(planned);
}

async function startAll({ deps }: BatchCall, planned: readonly PlannedRun[]): Promise<Result<Run[], ApiRefusal>> {
  const stubOf = ({ owner, thread_id }: ThreadAddress) => deps.threads.stub(owner, thread_id);
  const created = await Promise.allSettled(
    planned.map(({ address, command }) => stubOf(address).createRun(address, command)),
  );
  const runs = created.flatMap((each) => (each.status === "fulfilled" && each.value.ok ? [each.value.value] : []));
  if (runs.length === planned.length) return ok(runs);
  // What was checked was refused all the same, or its object failed: the others go again.
  await Promise.all(planned.map(({ address }) => stubOf(address).deleteThread(address)));
  for (const [index, each] of created.entries()) {
    if (each.status === "rejected") throw each.reason;
    if (!each.value.ok) return at(index, each.value.error);
  }
  return ok(runs);
}

/** Which of the runs was refused. */
function at(index: number, { code, message, details }: ApiRefusal): Result<never, ApiRefusal> {
  return refuse(code, `run ${index}: ${message}`, { ...details, index });
}

const cancelMany = operation({
  method: "post",
  path: "/runs/cancel",
  id: "cancelRuns",
  tag: "runs",
  summary: "Ends runs of a thread by their ids, or active runs of a thread, or of all threads, by their status.",
  query: {
    schema: z.strictObject({ action: cancelActionSchema, reason: cancelReasonSchema }),
  },
  body: { schema: cancelRunsBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 204: { description: "Being cancelled, or ended before." } },
  errors: ["not_found", "too_large"],
  handle: async ({ body, query, principal, deps }) => {
    const { thread_id, run_ids, status = "all" } = body;
    const asked: CancelRunsQuery = { ...query, status, ...(run_ids === undefined ? {} : { run_ids }) };
    const cancelOn = (threadId: string) =>
      deps.threads.stub(principal.owner, threadId).cancelRuns(addressOf(principal, threadId), asked);
    if (thread_id !== undefined) {
      const cancelled = await cancelOn(thread_id);
      return cancelled.ok ? empty(204) : cancelled;
    }
    const busy = await busyThreads(deps, principal.owner);
    if (!busy.ok) return busy;
    const results = await Promise.all(busy.value.map((threadId) => cancelOn(threadId)));
    // A thread that was deleted meanwhile has no run left to end.
    const failed = results.find((result) => !result.ok && result.error.code !== "not_found");
    return failed === undefined || failed.ok ? empty(204) : failed;
  },
});

/** Threads with active runs, those of stateless runs included, as D1 has heard of them. */
async function busyThreads({ threadSearch }: BatchCall["deps"], owner: string): Promise<Result<string[], ApiRefusal>> {
  const pages = await Promise.all(
    [undefined, { [STATELESS_MARK]: true }].map((metadata) =>
      threadSearch.search(
        owner,
        searchThreadsBodySchema.parse({ status: "busy", metadata, limit: CANCEL_THREADS_MAX }),
      ),
    ),
  );
  const total = pages.reduce((sum, page) => sum + page.total, 0);
  if (total > CANCEL_THREADS_MAX) {
    return refuse(
      "too_large",
      `${total} threads have active runs; at most ${CANCEL_THREADS_MAX} at once: name threads.`,
      {
        limit: CANCEL_THREADS_MAX,
      },
    );
  }
  return ok(pages.flatMap(({ threads }) => threads.map((thread) => thread.thread_id)));
}

export const runBulkOperations = [createBatch, cancelMany] as const;
