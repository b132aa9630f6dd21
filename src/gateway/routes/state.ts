import { z } from "zod";
import { type Result, ok } from "../../domain/shared/result.ts";
import type { ApiRefusal } from "../../protocol/errors.ts";
import {
  historyBodySchema,
  stateAtCheckpointBodySchema,
  threadStateSchema,
  UNSUPPORTED_THREAD_OPTIONS,
  updateStateBodySchema,
} from "../../protocol/threads.ts";
import { answer, json } from "../answers.ts";
import { JSON_BODY_BYTES_MAX, RUN_BODY_BYTES_MAX } from "../bounds.ts";
import { addressOf, type Answer, type Call, operation } from "../operation.ts";
import { queryFlag, threadParams } from "../shapes.ts";
import { refuseOption } from "../unsupported.ts";

const STATE = { description: "The state.", schema: threadStateSchema } as const;
const HISTORY = { description: "Newest first.", schema: z.array(threadStateSchema) } as const;
const UNSUPPORTED = { options: UNSUPPORTED_THREAD_OPTIONS.state } as const;

const stateQuery = { schema: z.strictObject({ subgraphs: queryFlag }), unsupported: UNSUPPORTED } as const;
const checkpointParams = threadParams.extend({ checkpoint_id: z.string().min(1).max(128) });

async function readState(
  { principal, deps }: Pick<Call<unknown, unknown, unknown>, "principal" | "deps">,
  { threadId, ...query }: { threadId: string; checkpoint_id?: string; subgraphs: boolean },
): Promise<Answer> {
  const address = addressOf(principal, threadId);
  const state = await deps.threads.stub(address.owner, address.thread_id).getState(address, query);
  return answer(state, (value) => json(value));
}

const get = operation({
  method: "get",
  path: "/threads/:thread_id/state",
  id: "getState",
  tag: "state",
  summary: "The latest state.",
  params: threadParams,
  query: stateQuery,
  responses: { 200: STATE },
  errors: ["not_found"],
  handle: async (call) => readState(call, { threadId: call.params.thread_id, subgraphs: call.query.subgraphs }),
});

const getAt = operation({
  method: "get",
  path: "/threads/:thread_id/state/:checkpoint_id",
  id: "getStateAt",
  tag: "state",
  summary: "The state at a checkpoint.",
  params: checkpointParams,
  query: stateQuery,
  responses: { 200: STATE },
  errors: ["not_found"],
  handle: async (call) => {
    const { thread_id: threadId, checkpoint_id } = call.params;
    return readState(call, { threadId, checkpoint_id, subgraphs: call.query.subgraphs });
  },
});

const postAt = operation({
  method: "post",
  path: "/threads/:thread_id/state/checkpoint",
  id: "postStateAt",
  tag: "state",
  summary: "The state at a checkpoint given as a reference.",
  params: threadParams,
  body: { schema: stateAtCheckpointBodySchema, bytesMax: JSON_BODY_BYTES_MAX, unsupported: UNSUPPORTED },
  responses: { 200: STATE },
  errors: ["not_found"],
  handle: async (call) => {
    const { checkpoint, subgraphs } = call.body;
    const root = rootOnly(checkpoint.checkpoint_ns);
    if (!root.ok) return root;
    const { checkpoint_id } = checkpoint;
    return readState(call, { threadId: call.params.thread_id, checkpoint_id, subgraphs: subgraphs ?? false });
  },
});

const update = operation({
  method: "post",
  path: "/threads/:thread_id/state",
  id: "updateState",
  tag: "state",
  summary: "Writes values as a node would; refused while a run is active.",
  params: threadParams,
  body: { schema: updateStateBodySchema, bytesMax: RUN_BODY_BYTES_MAX },
  responses: {
    200: { description: "The new checkpoint.", schema: z.object({ checkpoint: z.record(z.string(), z.unknown()) }) },
  },
  errors: ["not_found", "thread_busy", "unsupported_option"],
  handle: async ({ params, body, principal, deps }) => {
    const root = rootOnly(body.checkpoint?.checkpoint_ns);
    if (!root.ok) return root;
    const address = addressOf(principal, params.thread_id);
    const updated = await deps.threads.stub(address.owner, address.thread_id).updateState(address, body);
    return answer(updated, (value) => json(value));
  },
});

const postHistory = operation({
  method: "post",
  path: "/threads/:thread_id/history",
  id: "postHistory",
  tag: "state",
  summary: "Past states.",
  params: threadParams,
  body: { schema: historyBodySchema, bytesMax: JSON_BODY_BYTES_MAX, unsupported: UNSUPPORTED },
  responses: { 200: HISTORY },
  errors: ["not_found"],
  handle: async ({ params, body, principal, deps }) => {
    const root = rootOnly(body.checkpoint?.checkpoint_ns);
    if (!root.ok) return root;
    const address = addressOf(principal, params.thread_id);
    const states = await deps.threads.stub(address.owner, address.thread_id).history(address, body);
    return answer(states, (value) => json(value));
  },
});

const getHistory = operation({
  method: "get",
  path: "/threads/:thread_id/history",
  id: "getHistory",
  tag: "state",
  summary: "Past states.",
  params: threadParams,
  query: {
    schema: z.strictObject({
      limit: z.coerce.number().int().min(1).max(1_000).default(10),
      before: z.string().min(1).max(128).optional().describe("States before this checkpoint id."),
    }),
    unsupported: UNSUPPORTED,
  },
  responses: { 200: HISTORY },
  errors: ["not_found"],
  handle: async ({ params, query, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const states = await deps.threads.stub(address.owner, address.thread_id).history(address, query);
    return answer(states, (value) => json(value));
  },
});

/** State of a subgraph is not addressable: the root checkpoint is the one truth that survives a run. */
function rootOnly(namespace: string | undefined): Result<null, ApiRefusal> {
  return namespace === undefined || namespace === "" ? ok(null) : refuseOption("checkpoint.checkpoint_ns", namespace);
}

export const stateOperations = [get, postAt, getAt, update, postHistory, getHistory] as const;
