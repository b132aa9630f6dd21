/** Runs without a thread of the client's: docs/decisions/stateless-runs.md. */
import { z } from "zod";
import { type Result, ok } from "../../domain/shared/result.ts";
import type { ApiRefusal } from "../../protocol/errors.ts";
import { type CreateRunBody, runSchema } from "../../protocol/runs.ts";
import type { RunCommand, ThreadAddress } from "../../protocol/thread-rpc.ts";
import { keyedThreadId } from "../../platform/identifiers.ts";
import { IDEMPOTENCY_HEADER } from "../idempotency.ts";
import { addressOf, type Call, operation } from "../operation.ts";
import { prepareRun, RUN_BODY, startAndFollow, startInBackground, STREAM_QUERY } from "../run-requests.ts";

type StatelessCall = Call<undefined, unknown, CreateRunBody>;

interface Prepared {
  readonly address: ThreadAddress;
  readonly command: RunCommand;
}

/** The thread is made in the transaction that accepts the run: a refused run leaves none behind, whoever refuses it. */
async function onFreshThread(call: StatelessCall): Promise<Result<Prepared, ApiRefusal>> {
  const { principal, deps, body } = call;
  const command = await prepareRun({ ...call, body: { ...body, if_not_exists: "create" } });
  if (!command.ok) return command;
  // With a key the thread is found again without a row that says which it was.
  const key = command.value.idempotency?.key;
  const threadId = key === undefined ? deps.newId() : keyedThreadId(principal.owner, key);
  return ok({ address: { ...addressOf(principal, threadId), stateless: true }, command: command.value });
}

/** Alike in the three ways to start one; what they answer is not. */
const STARTS_RUN = {
  method: "post",
  tag: "runs",
  headers: IDEMPOTENCY_HEADER,
  body: RUN_BODY,
  errors: ["not_found", "idempotency_conflict", "rate_limited"],
} as const;

const create = operation({
  ...STARTS_RUN,
  path: "/runs",
  id: "createStatelessRun",
  summary: "Starts a run on a thread of its own and answers at once.",
  responses: { 200: { description: "The run.", schema: runSchema } },
  handle: async (call) => {
    const prepared = await onFreshThread(call);
    if (!prepared.ok) return prepared;
    return startInBackground(call, prepared.value.address, prepared.value.command);
  },
});

const stream = operation({
  ...STARTS_RUN,
  path: "/runs/stream",
  id: "streamStatelessRun",
  query: STREAM_QUERY,
  summary: "Starts a run on a thread of its own and streams its frames.",
  responses: { 200: { description: "Server-sent events.", media: "text/event-stream" } },
  handle: async (call) => {
    const prepared = await onFreshThread(call);
    if (!prepared.ok) return prepared;
    const { address, command } = prepared.value;
    return startAndFollow(call, address, { command, how: "stream", namespaces: call.query.namespace });
  },
});

const wait = operation({
  ...STARTS_RUN,
  path: "/runs/wait",
  id: "waitStatelessRun",
  summary: "Starts a run on a thread of its own and answers with its final values.",
  responses: { 200: { description: "Values.", schema: z.record(z.string(), z.unknown()) } },
  handle: async (call) => {
    const prepared = await onFreshThread(call);
    if (!prepared.ok) return prepared;
    const { address, command } = prepared.value;
    return startAndFollow(call, address, { command, how: "wait" });
  },
});

export const statelessRunOperations = [create, stream, wait] as const;
