import { expect, it } from "vitest";
import { err, ok } from "../../../src/domain/shared/result.ts";
import { defaultAssistantId } from "../../../src/platform/identifiers.ts";
import { type Run, UNSUPPORTED_RUN_OPTIONS } from "../../../src/protocol/runs.ts";
import { type RunCommand, THREAD_ADDRESS_HEADER } from "../../../src/protocol/thread-rpc.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ask, failure, gatewayDeps, type Failure } from "../../support/gateway.ts";

const ROUTES = [
  "/threads/t/runs",
  "/threads/t/runs/stream",
  "/threads/t/runs/wait",
  "/runs",
  "/runs/stream",
  "/runs/wait",
];
const BODY = { assistant_id: "lead_agent", input: { messages: [] } };

function run(threadId: string): Run {
  const base = { assistant_id: "a", created_at: "", updated_at: "", status: "pending", metadata: {} } as const;
  return { run_id: "r1", thread_id: threadId, ...base, multitask_strategy: "reject" };
}

/** Threads that accept every run and remember its command. */
function accepting() {
  const commands: RunCommand[] = [];
  const threads = new FakeThreads({
    createRun: async (address, command) => {
      commands.push(command);
      return ok(run(address.thread_id));
    },
    fetch: async (request) => {
      commands.push(await request.json<RunCommand>());
      return Response.json({});
    },
  });
  return { threads, commands };
}

const post = (deps: ReturnType<typeof gatewayDeps>, path: string, json: unknown, headers = {}) =>
  ask(deps, path, { method: "POST", json, headers });

it.each(ROUTES)("%s refuses by name every option and value that is not honoured, and starts nothing", async (path) => {
  const unsupported = [
    ...UNSUPPORTED_RUN_OPTIONS.map((field) => ({ field, value: {} })),
    { field: "durability", value: "exit" },
    { field: "checkpoint_during", value: false },
    { field: "on_completion", value: "delete" },
    { field: "stream_mode", value: "tools" },
    { field: "stream_mode", value: ["values", "lifecycle"] },
  ];
  for (const { field, value } of unsupported) {
    const { threads } = accepting();
    const answer = await post(gatewayDeps({ threads }), path, { ...BODY, [field]: value });
    const body = await answer.json<Failure>();
    expect([answer.status, body.code, body.details?.["field"]]).toEqual([422, "unsupported_option", field]);
    expect(threads.calls).toEqual([]);
  }
});

it.each(ROUTES)("%s takes options that are null as not set, and fills the defaults", async (path) => {
  const { threads, commands } = accepting();
  const nulls = Object.fromEntries(UNSUPPORTED_RUN_OPTIONS.map((field) => [field, null]));
  const answer = await post(gatewayDeps({ threads }), path, { ...BODY, ...nulls, multitask_strategy: null });
  expect(answer.status).toBe(200);
  expect(commands).toMatchObject([
    {
      graph_id: "lead_agent",
      body: {
        assistant_id: defaultAssistantId("lead_agent"),
        stream_mode: ["values"],
        on_disconnect: "continue",
        // The thread of a stateless run is made with it.
        if_not_exists: path.startsWith("/threads") ? "reject" : "create",
        multitask_strategy: "reject",
      },
    },
  ]);
});

it.each([
  { stream_mode: "nonsense" },
  { durability: "later" },
  { multitask_strategy: "queue" },
  { assistant_id: undefined },
  { input: "text" },
  { config: { recursion_limit: 0 } },
  { config: { max_concurrency: 3 } },
  { surprise: true },
])("a value nobody knows is invalid, not unsupported: %j", async (over) => {
  const { threads } = accepting();
  expect(await failure(await post(gatewayDeps({ threads }), "/threads/t/runs", { ...BODY, ...over }))).toEqual([
    422,
    "invalid_request",
  ]);
});

it("takes a graph id and its default assistant's id alike; an unknown assistant is 404 and leaves no thread", async () => {
  const { threads, commands } = accepting();
  for (const assistant_id of ["echo", defaultAssistantId("echo")]) {
    await post(gatewayDeps({ threads }), "/threads/t/runs", { ...BODY, assistant_id });
  }
  expect(commands.map((command) => [command.graph_id, command.body.assistant_id])).toEqual([
    ["echo", defaultAssistantId("echo")],
    ["echo", defaultAssistantId("echo")],
  ]);
  const calls = threads.calls.length;
  for (const path of ROUTES) {
    const answer = await post(gatewayDeps({ threads }), path, { ...BODY, assistant_id: "nobody" });
    expect(await failure(answer)).toEqual([404, "not_found"]);
  }
  expect(threads.calls.length).toBe(calls);
});

it("x-* headers reach the command; credentials and network headers do not", async () => {
  const { threads, commands } = accepting();
  const headers = { "x-tenant": "blue", "x-forwarded-for": "10.0.0.1", "x-real-ip": "10.0.0.1", authorization: "none" };
  await post(gatewayDeps({ threads }), "/threads/t/runs/stream", BODY, headers);
  expect(commands[0]?.headers).toEqual({ "x-tenant": "blue" });
  const large = { "x-big": "y".repeat(20_000) };
  expect(await failure(await post(gatewayDeps({ threads }), "/threads/t/runs", BODY, large))).toEqual([
    413,
    "too_large",
  ]);
});

it("a background run names itself in Content-Location, in the form the SDK parses", async () => {
  const { threads } = accepting();
  const answer = await post(gatewayDeps({ threads }), "/threads/t/runs", BODY);
  const found = /(\/threads\/(?<thread_id>.+))?\/runs\/(?<run_id>.+)/.exec(
    answer.headers.get("content-location") ?? "",
  );
  expect(found?.groups).toEqual({ thread_id: "t", run_id: "r1" });
});

it.each(["/runs", "/runs/stream", "/runs/wait"])("%s runs on a fresh thread of the caller's, marked", async (path) => {
  const { threads, commands } = accepting();
  await post(gatewayDeps({ threads }), path, BODY);
  await post(gatewayDeps({ threads }), path, BODY);
  // One call each: the thread is made with the run, not before it.
  expect(threads.calls.map((call) => call.owner)).toEqual(["alice", "alice"]);
  expect(new Set(threads.calls.map((call) => call.threadId)).size).toBe(2);
  for (const { args, threadId } of threads.calls) {
    const [first] = args;
    const header = first instanceof Request ? first.headers.get(THREAD_ADDRESS_HEADER) : JSON.stringify(first);
    expect(JSON.parse(header!)).toMatchObject({ owner: "alice", thread_id: threadId, stateless: true });
  }
  expect(commands.map(({ body }) => body.if_not_exists)).toEqual(["create", "create"]);
});

it("follows a run with its modes, its cursor and its address", async () => {
  const seen: Request[] = [];
  const threads = new FakeThreads({
    fetch: async (request) => {
      seen.push(request);
      return new Response("");
    },
  });
  const deps = gatewayDeps({ threads });
  const query = "cancel_on_disconnect=0&checkpoint_id=cp&stream_mode=values&stream_mode=custom";
  await ask(deps, `/threads/t/runs/r/stream?${query}`, { headers: { "last-event-id": "-1" } });
  await ask(deps, "/threads/t/runs/r/join?cancel_on_disconnect=true");
  expect(seen.map((request) => new URL(request.url).pathname + new URL(request.url).search)).toEqual([
    "/runs/r/stream?cancel_on_disconnect=0&stream_mode=values&stream_mode=custom",
    "/runs/r/join?cancel_on_disconnect=1",
  ]);
  expect(seen[0]?.headers.get("last-event-id")).toBe("-1");
  const address = { v: 1, owner: "alice", thread_id: "t", role: "user" };
  expect(JSON.parse(seen[0]?.headers.get(THREAD_ADDRESS_HEADER) ?? "")).toEqual(address);
  const refused = await ask(deps, "/threads/t/runs/r/stream?stream_mode=tools");
  expect(await failure(refused)).toEqual([422, "unsupported_option"]);
});

it("cancel answers 202 for wait=0 and 204 for wait=1, and hands on action and reason", async () => {
  const waits: boolean[] = [];
  const actions: unknown[] = [];
  const threads = new FakeThreads({
    cancelRun: async (_address, runId, { wait, action, reason }) => {
      waits.push(wait);
      actions.push([action, reason]);
      return runId === "r" ? ok(null) : err({ code: "not_cancellable", message: "ended" });
    },
  });
  const cancel = (query: string, id = "r") =>
    ask(gatewayDeps({ threads }), `/threads/t/runs/${id}/cancel${query}`, { method: "POST" });
  const statuses = [];
  for (const query of ["", "?wait=0&action=interrupt", "?wait=false", "?wait=1", "?wait=true"]) {
    statuses.push((await cancel(query)).status);
  }
  expect(statuses).toEqual([202, 202, 202, 204, 204]);
  expect(waits).toEqual([false, false, false, true, true]);
  expect((await cancel("?action=rollback&reason=bored")).status).toBe(202);
  expect(actions.at(0)).toEqual(["interrupt", undefined]);
  expect(actions.at(-1)).toEqual(["rollback", "bored"]);
  expect(await failure(await cancel("?action=pause"))).toEqual([422, "invalid_request"]);
  expect(await failure(await cancel("?wait=maybe"))).toEqual([422, "invalid_request"]);
  expect(await failure(await cancel("", "done"))).toEqual([409, "not_cancellable"]);
});
