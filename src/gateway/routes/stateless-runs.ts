/** Runs without a thread of the client's: docs/decisions/stateless-runs.md. */
import { z } from "zod";
import { type Result, ok } from "../../domain/shared/result.ts";
import type { ApiRefusal } from "../../protocol/errors.ts";
import { type CreateRunBody, runSchema } from "../../protocol/runs.ts";
import type { ThreadAddress } from "../../protocol/thread-rpc.ts";
import { STATELESS_MARK } from "../../protocol/threads.ts";
import { addressOf, type Call, operation } from "../operation.ts";
import { RUN_BODY, startAndFollow, startInBackground } from "../run-requests.ts";
import { findAssistant } from "../assistants.ts";

type StatelessCall = Call<undefined, undefined, CreateRunBody>;

/** The assistant is checked first: a refused run leaves no thread behind. */
async function freshThread({ body, principal, deps }: StatelessCall): Promise<Result<ThreadAddress, ApiRefusal>> {
  const assistant = findAssistant(deps, body.assistant_id);
  if (!assistant.ok) return assistant;
  const address = addressOf(principal, deps.newId());
  const stub = deps.threads.stub(address.owner, address.thread_id);
  const created = await stub.createThread(address, { metadata: { [STATELESS_MARK]: true }, if_exists: "do_nothing" });
  return created.ok ? ok(address) : created;
}

/** Alike in the three ways to start one; what they answer is not. */
const STARTS_RUN = { method: "post", tag: "runs", body: RUN_BODY, errors: ["not_found"] } as const;

const create = operation({
  ...STARTS_RUN,
  path: "/runs",
  id: "createStatelessRun",
  summary: "Starts a run on a thread of its own and answers at once.",
  responses: { 200: { description: "The run.", schema: runSchema } },
  handle: async (call) => {
    const address = await freshThread(call);
    return address.ok ? startInBackground(call, address.value) : address;
  },
});

const stream = operation({
  ...STARTS_RUN,
  path: "/runs/stream",
  id: "streamStatelessRun",
  summary: "Starts a run on a thread of its own and streams its frames.",
  responses: { 200: { description: "Server-sent events.", media: "text/event-stream" } },
  handle: async (call) => {
    const address = await freshThread(call);
    return address.ok ? startAndFollow(call, address.value, "stream") : address;
  },
});

const wait = operation({
  ...STARTS_RUN,
  path: "/runs/wait",
  id: "waitStatelessRun",
  summary: "Starts a run on a thread of its own and answers with its final values.",
  responses: { 200: { description: "Values.", schema: z.record(z.string(), z.unknown()) } },
  handle: async (call) => {
    const address = await freshThread(call);
    return address.ok ? startAndFollow(call, address.value, "wait") : address;
  },
});

export const statelessRunOperations = [create, stream, wait] as const;
