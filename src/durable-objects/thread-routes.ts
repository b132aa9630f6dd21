/**
 * The object's `fetch`: the streaming routes of protocol/thread-rpc.ts. The gateway validated what arrives; what is
 * answered passes through it untouched, so that a reader's backpressure reaches the frames.
 */
import { STATUS_BY_CODE, type ApiRefusal } from "../protocol/errors.ts";
import { type RunCommand, THREAD_ADDRESS_HEADER, type ThreadAddress } from "../protocol/thread-rpc.ts";
import { noThread } from "./no-thread.ts";
import { principalOf } from "./principal-of.ts";
import { threadExport } from "./thread-export.ts";
import type { ThreadRuntime } from "./thread-runtime.ts";
import { parseThreadEventId } from "./thread-stream.ts";

/** How a route gets its thread's runtime; `undefined` where there is no such thread. */
export interface RuntimeAccess {
  existing(address: ThreadAddress): Promise<ThreadRuntime | undefined>;
  forRun(address: ThreadAddress, command: RunCommand): Promise<RunPlace | undefined>;
}

/** Where a run is created; `newThread` when the thread is made with it. */
export interface RunPlace {
  readonly runtime: ThreadRuntime;
  readonly newThread?: ThreadAddress;
}

export class ThreadRoutes {
  readonly #access: RuntimeAccess;

  constructor(access: RuntimeAccess) {
    this.#access = access;
  }

  async answer(request: Request): Promise<Response> {
    const address = JSON.parse(request.headers.get(THREAD_ADDRESS_HEADER) ?? "null") as ThreadAddress | null;
    if (address === null) return refusal({ code: "invalid_request", message: `${THREAD_ADDRESS_HEADER} is missing` });
    const url = new URL(request.url);
    const [, runs, runId, action] = url.pathname.split("/");
    if (request.method === "POST" && runs === "runs" && (runId === "stream" || runId === "wait")) {
      const namespaces = url.searchParams.getAll("namespace");
      return this.#start(address, await request.json<RunCommand>(), { how: runId, namespaces });
    }
    if (
      request.method === "GET" &&
      runs === "runs" &&
      runId !== undefined &&
      (action === "stream" || action === "join")
    ) {
      return this.#follow(address, request, { runId, action, query: url.searchParams });
    }
    if (request.method === "GET" && runs === "export") return this.#export(address);
    if (request.method === "GET" && runs === "stream") return this.#followThread(address, request, url.searchParams);
    return refusal({ code: "not_found", message: `the thread object has no route ${request.method} ${url.pathname}` });
  }

  async #start(
    address: ThreadAddress,
    command: RunCommand,
    { how, namespaces }: { how: "stream" | "wait"; namespaces: readonly string[] },
  ): Promise<Response> {
    const found = await this.#access.forRun(address, command);
    if (found === undefined) return refusal(noThread(address));
    const { runtime, newThread } = found;
    const created = await runtime.runs.create(command, { principal: principalOf(address), newThread });
    if (!created.ok) return refusal(created.error);
    await runtime.arm();
    const cancelOnDisconnect = command.body.on_disconnect === "cancel";
    if (how === "wait") return runtime.streams.join(created.value, { cancelOnDisconnect });
    return runtime.streams.stream(created.value, { afterId: 0, modes: [], namespaces, cancelOnDisconnect });
  }

  async #export(address: ThreadAddress): Promise<Response> {
    const runtime = await this.#access.existing(address);
    if (runtime === undefined) return refusal(noThread(address));
    const headers = { "content-type": "application/jsonl", "cache-control": "no-cache" };
    return new Response(threadExport(runtime), { headers });
  }

  async #followThread(address: ThreadAddress, request: Request, query: URLSearchParams): Promise<Response> {
    const runtime = await this.#access.existing(address);
    if (runtime === undefined) return refusal(noThread(address));
    const start = parseThreadEventId(request.headers.get("last-event-id"));
    return runtime.streams.threadStream({ start, lifecycleOnly: query.get("lifecycle_only") === "1" });
  }

  async #follow(
    address: ThreadAddress,
    request: Request,
    { runId, action, query }: { runId: string; action: "stream" | "join"; query: URLSearchParams },
  ): Promise<Response> {
    const runtime = await this.#access.existing(address);
    if (runtime === undefined) return refusal(noThread(address));
    const found = runtime.runs.find(runId);
    if (!found.ok) return refusal(found.error);
    const cancelOnDisconnect = query.get("cancel_on_disconnect") === "1";
    if (action === "join") return runtime.streams.join(found.value, { cancelOnDisconnect });
    const afterId = parseLastEventId(request.headers.get("last-event-id"));
    const modes = query.getAll("stream_mode");
    const namespaces = query.getAll("namespace");
    return runtime.streams.stream(found.value, { afterId, modes, namespaces, cancelOnDisconnect });
  }
}

/** Absent, "-1" and anything that is no frame id mean from the start: a frame too many is better than one too few. */
function parseLastEventId(header: string | null): number {
  const id = Number(header ?? "-1");
  return Number.isSafeInteger(id) && id > 0 ? id : 0;
}

function refusal(error: ApiRefusal): Response {
  return Response.json(error, { status: STATUS_BY_CODE[error.code] });
}
