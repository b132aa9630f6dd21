/** The three ways to start a run, for a thread of the client's and for a fresh one alike. */
import { z } from "zod";
import {
  createRunBodySchema,
  type CreateRunBody,
  UNSUPPORTED_RUN_OPTIONS,
  UNSUPPORTED_RUN_VALUES,
} from "../protocol/runs.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import { ok, type Result } from "../domain/shared/result.ts";
import type { RunCommand, ThreadAddress } from "../protocol/thread-rpc.ts";
import { answer, fetchThread, json } from "./answers.ts";
import { RUN_BODY_BYTES_MAX } from "./bounds.ts";
import { runIdempotency } from "./idempotency.ts";
import type { Answer, Call, JsonBody } from "./operation.ts";
import { toRunCommand } from "./run-command.ts";
import { queryNamespaces } from "./shapes.ts";

export const RUN_BODY: JsonBody<CreateRunBody> = {
  schema: createRunBodySchema,
  bytesMax: RUN_BODY_BYTES_MAX,
  unsupported: { options: UNSUPPORTED_RUN_OPTIONS, values: UNSUPPORTED_RUN_VALUES },
};

type RunCall = Pick<Call<unknown, unknown, CreateRunBody>, "body" | "deps" | "principal" | "request" | "sent">;

/** What the run will be, or why it will not: nothing has happened yet. `threadId`: of the path, where it has one. */
export async function prepareRun(call: RunCall, threadId?: string): Promise<Result<RunCommand, ApiRefusal>> {
  const { body, deps, principal, request, sent } = call;
  const idempotency = runIdempotency(request.headers, sent);
  if (!idempotency.ok) return idempotency;
  const command = await toRunCommand(deps, body, { owner: principal.owner, headers: request.headers, threadId });
  if (!command.ok || idempotency.value === undefined) return command;
  return ok({ ...command.value, idempotency: idempotency.value });
}

export async function startInBackground(
  { deps }: Pick<RunCall, "deps">,
  address: ThreadAddress,
  command: RunCommand,
): Promise<Answer> {
  const created = await deps.threads.stub(address.owner, address.thread_id).createRun(address, command);
  return answer(created, (run) =>
    json(run, { headers: { "content-location": `/threads/${run.thread_id}/runs/${run.run_id}` } }),
  );
}

interface Following {
  readonly command: RunCommand;
  readonly how: "stream" | "wait";
  /** Of the graphs whose frames the client wants; all when empty. */
  readonly namespaces?: readonly string[];
}

/** What `stream` takes beside its body. */
export const STREAM_QUERY = { schema: z.strictObject({ namespace: queryNamespaces }) };

/** `stream` answers SSE, `wait` the final values; both bodies come from the object as they are. */
export async function startAndFollow(
  { deps }: Pick<RunCall, "deps">,
  address: ThreadAddress,
  { command, how, namespaces = [] }: Following,
): Promise<Answer> {
  const init = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(command),
  };
  const search = new URLSearchParams(namespaces.map((namespace) => ["namespace", namespace]));
  return fetchThread(deps.threads, address, { path: `/runs/${how}?${search.toString()}`, init });
}
