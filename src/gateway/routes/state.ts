import { z } from "zod";
import { wholeNumber } from "../../protocol/query-number.ts";
import {
  checkpointIdSchema,
  historyBodySchema,
  patchStateBodySchema,
  threadStateSchema,
  stateAtCheckpointBodySchema,
  type StateQuery,
  stateSelectQuerySchema,
  updateStateBodySchema,
} from "../../protocol/threads.ts";
import { answer, empty, json } from "../answers.ts";
import { JSON_BODY_BYTES_MAX, RUN_BODY_BYTES_MAX } from "../bounds.ts";
import { refuse } from "../errors.ts";
import { addressOf, type Answer, type Call, operation } from "../operation.ts";
import { queryFlag } from "../../protocol/query-flag.ts";
import { threadParams } from "../shapes.ts";

const STATE = { description: "The state; with `select` those fields of it.", schema: threadStateSchema } as const;
const HISTORY = {
  description: "Newest first; with `select` those fields of each.",
  schema: z.array(threadStateSchema),
} as const;

const stateQuery = {
  schema: z.strictObject({
    subgraphs: queryFlag,
    select: stateSelectQuerySchema
      .optional()
      .describe("Fields of the answer, or `values.<key>`; repeat the name for several."),
  }),
} as const;
const checkpointParams = threadParams.extend({ checkpoint_id: checkpointIdSchema });

async function readState(
  { principal, deps }: Pick<Call<unknown, unknown, unknown>, "principal" | "deps">,
  { threadId, ...query }: StateQuery & { threadId: string },
): Promise<Answer> {
  const address = addressOf(principal, threadId);
  const state = await deps.threads.stub(address.owner, address.thread_id).getState(address, query);
  return answer(state, (value) => json(value));
}

/** A reference may name its thread, and then only the one it is asked of. */
function foreignThread(
  checkpoint: { thread_id?: string | null | undefined } | null | undefined,
  threadId: string,
): Answer | undefined {
  const named = checkpoint?.thread_id ?? threadId;
  if (named === threadId) return undefined;
  return refuse("invalid_request", `body.checkpoint.thread_id: must be '${threadId}', the thread of the path`);
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
  handle: async (call) => readState(call, { threadId: call.params.thread_id, ...call.query }),
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
    return readState(call, { threadId, checkpoint_id, ...call.query });
  },
});

const postAt = operation({
  method: "post",
  path: "/threads/:thread_id/state/checkpoint",
  id: "postStateAt",
  tag: "state",
  summary: "The state at a checkpoint given as a reference, of the root or of a subgraph.",
  params: threadParams,
  body: { schema: stateAtCheckpointBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 200: STATE },
  errors: ["not_found"],
  handle: async (call) => {
    const { checkpoint, subgraphs, select } = call.body;
    return (
      foreignThread(checkpoint, call.params.thread_id) ??
      readState(call, {
        threadId: call.params.thread_id,
        subgraphs: subgraphs ?? false,
        ...(checkpoint.checkpoint_id ? { checkpoint_id: checkpoint.checkpoint_id } : {}),
        ...(checkpoint.checkpoint_ns ? { checkpoint_ns: checkpoint.checkpoint_ns } : {}),
        ...(select ? { select } : {}),
      })
    );
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
  errors: ["not_found", "thread_busy"],
  handle: async ({ params, body, principal, deps }) => {
    const foreign = foreignThread(body.checkpoint, params.thread_id);
    if (foreign !== undefined) return foreign;
    const address = addressOf(principal, params.thread_id);
    const updated = await deps.threads.stub(address.owner, address.thread_id).updateState(address, body);
    return answer(updated, (value) => json(value));
  },
});

const patch = operation({
  method: "patch",
  path: "/threads/:thread_id/state",
  id: "patchState",
  tag: "state",
  summary: "Merges into the metadata of the newest checkpoint; `history` finds it by that.",
  params: threadParams,
  body: { schema: patchStateBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 204: { description: "Patched." } },
  errors: ["not_found", "thread_busy"],
  handle: async ({ params, body, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const patched = await deps.threads.stub(address.owner, address.thread_id).patchState(address, body.metadata);
    return answer(patched, () => empty(204));
  },
});

const postHistory = operation({
  method: "post",
  path: "/threads/:thread_id/history",
  id: "postHistory",
  tag: "state",
  summary: "Past states.",
  params: threadParams,
  body: { schema: historyBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 200: HISTORY },
  errors: ["not_found"],
  handle: async ({ params, body, principal, deps }) => {
    const foreign = foreignThread(body.checkpoint, params.thread_id);
    if (foreign !== undefined) return foreign;
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
      limit: wholeNumber({ min: 1, max: 1_000 }).default(10),
      before: checkpointIdSchema.optional().describe("States before this checkpoint id."),
      select: stateSelectQuerySchema.optional().describe("As of the state."),
    }),
  },
  responses: { 200: HISTORY },
  errors: ["not_found"],
  handle: async ({ params, query, principal, deps }) => {
    const address = addressOf(principal, params.thread_id);
    const states = await deps.threads.stub(address.owner, address.thread_id).history(address, query);
    return answer(states, (value) => json(value));
  },
});

export const stateOperations = [get, postAt, getAt, update, patch, postHistory, getHistory] as const;
