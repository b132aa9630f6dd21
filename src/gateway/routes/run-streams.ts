/** Streams of runs that are there already: of one run, with or without its thread's id, and of a thread's runs. */
import { z } from "zod";
import { UNSUPPORTED_RUN_VALUES } from "../../protocol/runs.ts";
import type { ThreadAddress } from "../../protocol/thread-rpc.ts";
import { fetchThread } from "../answers.ts";
import { refuse } from "../errors.ts";
import { addressOf, type Answer, type Call, operation } from "../operation.ts";
import { queryFlag } from "../../protocol/query-flag.ts";
import { queryNamespaces, queryStreamModes, runParams, threadParams } from "../shapes.ts";

const SSE = { 200: { description: "Server-sent events.", media: "text/event-stream" } } as const;
const LAST_EVENT_ID = "Last-Event-ID";

/** What a join of one run takes. */
const JOIN = {
  headers: { [LAST_EVENT_ID]: "The last frame seen; `-1` replays all." },
  query: {
    schema: z.strictObject({
      stream_mode: queryStreamModes,
      namespace: queryNamespaces,
      cancel_on_disconnect: queryFlag,
      checkpoint_id: z
        .string()
        .max(128)
        .optional()
        .describe("Sent by clients that rejoin; a run has one history, so it selects nothing."),
    }),
    unsupported: { values: { stream_mode: UNSUPPORTED_RUN_VALUES["stream_mode"] ?? [] } },
  },
  responses: SSE,
  errors: ["not_found"],
} as const;

type JoinCall = Pick<
  Call<{ run_id: string }, z.output<typeof JOIN.query.schema>, undefined>,
  "params" | "query" | "request" | "deps"
>;

async function joinStream({ params, query, request, deps }: JoinCall, address: ThreadAddress): Promise<Answer> {
  const search = new URLSearchParams({ cancel_on_disconnect: query.cancel_on_disconnect ? "1" : "0" });
  for (const mode of [query.stream_mode ?? []].flat()) search.append("stream_mode", mode);
  for (const namespace of query.namespace) search.append("namespace", namespace);
  const init = { headers: resumeHeaders(request) };
  return fetchThread(deps.threads, address, { path: `/runs/${params.run_id}/stream?${search.toString()}`, init });
}

function resumeHeaders(request: Request): Record<string, string> {
  const lastEventId = request.headers.get(LAST_EVENT_ID);
  return lastEventId === null ? {} : { "last-event-id": lastEventId };
}

const run = operation({
  ...JOIN,
  method: "get",
  path: "/threads/:thread_id/runs/:run_id/stream",
  id: "joinRunStream",
  tag: "runs",
  summary: "Streams a run's frames from where the client left off; finished runs replay until their frames expire.",
  params: runParams,
  handle: async (call) => joinStream(call, addressOf(call.principal, call.params.thread_id)),
});

const statelessRun = operation({
  ...JOIN,
  method: "get",
  path: "/runs/:run_id/stream",
  id: "joinStatelessRunStream",
  tag: "runs",
  summary: "The same for a client that knows the run only.",
  params: runParams.pick({ run_id: true }),
  handle: async (call) => {
    const { params, principal, deps } = call;
    // A stateless run's thread has its id; of any other run the log says where it is.
    const own = await joinStream(call, addressOf(principal, params.run_id));
    if (own.ok || own.error.code !== "not_found") return own;
    const threadId = await deps.events.threadOfRun(principal.owner, params.run_id);
    if (threadId === null) return refuse("not_found", `no run '${params.run_id}'`);
    return joinStream(call, addressOf(principal, threadId));
  },
});

const THREAD_STREAM_MODES = ["run_modes", "lifecycle"] as const;
const threadStreamMode = z.enum(THREAD_STREAM_MODES);

const thread = operation({
  method: "get",
  path: "/threads/:thread_id/stream",
  id: "joinThreadStream",
  tag: "runs",
  summary: "Streams the thread's runs one behind another, for as long as the client stays.",
  params: threadParams,
  headers: { [LAST_EVENT_ID]: "The last event seen; `-` is the first there is; without it, what comes from now on." },
  query: {
    schema: z.strictObject({
      stream_mode: z
        .union([threadStreamMode, z.array(threadStreamMode).min(1)], {
          error: `must be one of ${THREAD_STREAM_MODES.map((mode) => `"${mode}"`).join(", ")}, or a list of them`,
        })
        .default("run_modes")
        .describe("`run_modes`: what the runs record. `lifecycle`: their starts and ends."),
    }),
    unsupported: { values: { stream_mode: ["state_update"] } },
  },
  responses: SSE,
  errors: ["not_found"],
  handle: async ({ params, query, principal, request, deps }) => {
    const isLifecycle = ![query.stream_mode].flat().includes("run_modes");
    const init = { headers: resumeHeaders(request) };
    const path = `/stream?lifecycle_only=${isLifecycle ? "1" : "0"}`;
    return fetchThread(deps.threads, addressOf(principal, params.thread_id), { path, init });
  },
});

export const runStreamOperations = [run, statelessRun, thread] as const;
