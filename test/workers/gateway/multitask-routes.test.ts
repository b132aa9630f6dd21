/** Strategies, cancel and the bulk routes over HTTP: on every create route alike. */
import { describe, expect, it } from "vitest";
import { ALICE, asking, BOB, newThread, parseFrames, send, sendJson } from "../../support/http.ts";
import { eventually } from "../../support/eventually.ts";

interface Run {
  readonly run_id: string;
  readonly thread_id: string;
  readonly status: string;
  readonly cancel_reason?: string;
  readonly multitask_strategy: string;
}

/** Long enough to be met at work on a slow machine. */
const SLOW = '@ call bash {"command": "sleep 30"}\n@ say never';
const DELAYED = { after_seconds: 3_600 };
const CREATES = [
  "/threads/:t/runs",
  "/threads/:t/runs/stream",
  "/threads/:t/runs/wait",
  "/runs",
  "/runs/stream",
  "/runs/wait",
];

const getRun = (threadId: string, runId: string) => send("GET", `/threads/${threadId}/runs/${runId}`);
const runOf = (threadId: string, runId: string) => sendJson<Run>("GET", `/threads/${threadId}/runs/${runId}`);
const start = (threadId: string, script: string, options = {}) =>
  sendJson<Run>("POST", `/threads/${threadId}/runs`, asking(script, options));
const statusOf = async (threadId: string) => (await sendJson<{ status: string }>("GET", `/threads/${threadId}`)).status;

/** Until the run is at work on its tool. */
function untilCalled(threadId: string): Promise<unknown> {
  return eventually(
    () => sendJson<{ values: { messages?: { tool_calls?: unknown[] }[] } }>("GET", `/threads/${threadId}/state`),
    ({ values }) => (values.messages ?? []).some((message) => (message.tool_calls ?? []).length > 0),
  );
}

describe("options of a create", () => {
  it.each(CREATES)("are refused by name alike: POST %s", async (route) => {
    const path = route.replace(":t", await newThread());
    const refusals = [
      [{ feedback_keys: ["score"] }, { field: "feedback_keys" }],
      [{ durability: "exit" }, { field: "durability", value: "exit" }],
      [{ checkpoint_during: false }, { field: "checkpoint_during", value: false }],
      [{ on_completion: "delete" }, { field: "on_completion", value: "delete" }],
    ] as const;
    for (const [option, details] of refusals) {
      const response = await send("POST", path, asking("@ say never", option));
      expect([response.status, await response.json()]).toMatchObject([422, { code: "unsupported_option", details }]);
    }
    const late = await send("POST", path, asking("@ say never", { after_seconds: 2_592_001 }));
    expect([late.status, await late.json()]).toMatchObject([422, { code: "invalid_request" }]);
  });

  it.each(CREATES)("that ask for what is done anyway are taken: POST %s", async (route) => {
    const path = route.replace(":t", await newThread());
    const options = {
      feedback_keys: [],
      durability: "async",
      checkpoint_during: true,
      on_completion: "keep",
      after_seconds: 0,
      on_disconnect: "cancel",
      multitask_strategy: "enqueue",
    };
    const response = await send("POST", path, asking("@ say done", options));
    expect(response.status, await response.clone().text()).toBe(200);
    await response.text();
  });

  it.each(CREATES.slice(0, 3))("a busy thread takes a run that waits: POST %s", async (route) => {
    const threadId = await newThread();
    const delayed = await start(threadId, "@ say never", DELAYED);
    const path = route.replace(":t", threadId);
    expect((await send("POST", path, asking("@ say no"))).status).toBe(409);
    const response = await send("POST", path, asking("@ say done", { multitask_strategy: "interrupt" }));
    expect(response.status).toBe(200);
    await response.text();
    expect(await runOf(threadId, delayed.run_id)).toMatchObject({ status: "interrupted" });
    const [newest] = await sendJson<Run[]>("GET", `/threads/${threadId}/runs`);
    expect(newest!.multitask_strategy).toBe("interrupt");
    await eventually(
      () => runOf(threadId, newest!.run_id),
      ({ status }) => status === "success",
    );
  });
});

describe("cancel", () => {
  it("wait=0 answers while the run ends, its reason is shown; a second one succeeds, one after a success is 409", async () => {
    const threadId = await newThread();
    const { run_id: runId } = await start(threadId, SLOW);
    await untilCalled(threadId);
    expect((await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=0&reason=too%20slow`)).status).toBe(202);
    expect((await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1`)).status).toBe(204);
    expect(await runOf(threadId, runId)).toMatchObject({ status: "interrupted", cancel_reason: "too slow" });
    expect((await send("POST", `/threads/${threadId}/runs/${runId}/cancel`)).status).toBe(202);
    const late = await send("POST", `/threads/${threadId}/runs/${runId}/cancel?action=rollback`);
    expect([late.status, await late.json()]).toMatchObject([409, { code: "not_cancellable" }]);
  });

  it("action=rollback: the run is 404 afterwards, its log is empty, its stream says why, the thread is idle and empty", async () => {
    const threadId = await newThread();
    const { run_id: runId } = await start(threadId, SLOW);
    await untilCalled(threadId);
    const stream = await send("GET", `/threads/${threadId}/runs/${runId}/stream`);
    const joined = await send("GET", `/threads/${threadId}/runs/${runId}/join`);
    expect((await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1&action=rollback`)).status).toBe(204);
    expect(parseFrames(await stream.text()).at(-1)).toMatchObject({ event: "error", data: { error: "RunRolledBack" } });
    expect(await joined.json()).toMatchObject({ __error__: { error: "RunRolledBack" } });
    expect((await getRun(threadId, runId)).status).toBe(404);
    expect((await send("GET", `/threads/${threadId}/runs/${runId}/events`)).status).toBe(404);
    expect((await send("GET", `/threads/${threadId}/runs/${runId}/stream`)).status).toBe(404);
    expect(await statusOf(threadId)).toBe("idle");
    expect(await sendJson("GET", `/threads/${threadId}/state`)).toMatchObject({ values: {} });
  });

  it("of a client that left: on_disconnect=cancel ends a run that still waits", async () => {
    const threadId = await newThread();
    const response = await send(
      "POST",
      `/threads/${threadId}/runs/stream`,
      asking("@ say never", { ...DELAYED, on_disconnect: "cancel" }),
    );
    const runId = response.headers.get("content-location")!.split("/").at(-1)!;
    await response.body!.cancel();
    await eventually(
      () => runOf(threadId, runId),
      ({ status }) => status === "interrupted",
    );
    expect(await statusOf(threadId)).toBe("idle");
  });
});

describe("POST /runs/cancel", () => {
  it("ends named runs of a thread; with an unknown or a foreign one among them nothing is cancelled", async () => {
    const threadId = await newThread();
    const one = await start(threadId, "@ say never", DELAYED);
    const two = await start(threadId, "@ say never", { multitask_strategy: "enqueue" });
    const ids = [one.run_id, two.run_id];
    const cancel = (body: unknown, as = ALICE) => send("POST", "/runs/cancel", body, as);
    expect((await cancel({ thread_id: threadId, run_ids: [...ids, "missing"] })).status).toBe(404);
    expect((await cancel({ thread_id: threadId, run_ids: ids }, BOB)).status).toBe(404);
    expect(await runOf(threadId, one.run_id)).toMatchObject({ status: "pending" });
    expect((await cancel({ thread_id: threadId, run_ids: ids })).status).toBe(204);
    for (const id of ids) expect(await runOf(threadId, id)).toMatchObject({ status: "interrupted" });
    expect((await cancel({ thread_id: threadId, run_ids: ids })).status).toBe(204);
    for (const body of [{}, { run_ids: ids }, { thread_id: threadId, run_ids: ids, status: "all" }])
      expect((await cancel(body)).status).toBe(422);
  });

  it("by status ends the caller's runs on every thread, stateless ones too, and nobody else's", async () => {
    const threadId = await newThread();
    const mine = await start(threadId, "@ say never", DELAYED);
    const theirs = await (await send("POST", "/runs", asking("@ say never", DELAYED), BOB)).json<Run>();
    expect((await send("POST", "/runs/cancel?action=interrupt", { status: "pending" }, BOB)).status).toBe(204);
    const ended = await send("GET", `/threads/${theirs.thread_id}/runs/${theirs.run_id}`, undefined, BOB);
    expect(await ended.json()).toMatchObject({ status: "interrupted" });
    expect(await runOf(threadId, mine.run_id)).toMatchObject({ status: "pending" });
  });
});

describe("POST /runs/batch", () => {
  it("starts every run on a thread of its own, in the order of the request, as the SDK sends them", async () => {
    const bodies = ["one", "two"].map((word) => ({ ...asking(`@ say ${word}`), assistantId: "lead_agent" }));
    const runs = await sendJson<Run[]>("POST", "/runs/batch", bodies);
    expect(new Set(runs.map((run) => run.thread_id)).size).toBe(2);
    const values = await Promise.all(
      runs.map((run) =>
        sendJson<{ messages: { content: string }[] }>("GET", `/threads/${run.thread_id}/runs/${run.run_id}/join`),
      ),
    );
    expect(values.map(({ messages }) => messages.at(-1)!.content)).toEqual(["one", "two"]);
  });

  it("takes the SDK's own spelling of an option for the option it is: honoured, or refused by its name", async () => {
    const spelt = {
      ...asking("@ say x"),
      assistantId: "lead_agent",
      multitaskStrategy: "enqueue",
      streamSubgraphs: true,
    };
    const [run] = await sendJson<Run[]>("POST", "/runs/batch", [spelt]);
    expect(run).toMatchObject({ multitask_strategy: "enqueue", kwargs: { stream_subgraphs: true } });
    const refused = [
      [{ feedbackKeys: ["score"] }, { code: "unsupported_option", details: { field: "feedback_keys", index: 0 } }],
      [{ onCompletion: "delete" }, { code: "unsupported_option", details: { field: "on_completion", index: 0 } }],
      [{ assistantId: "other" }, { code: "invalid_request" }],
      [{ madeUp: 1 }, { code: "invalid_request" }],
    ] as const;
    for (const [option, refusal] of refused) {
      const response = await send("POST", "/runs/batch", [{ ...asking("@ say never"), ...option }]);
      expect([response.status, await response.json()]).toMatchObject([422, refusal]);
    }
  });

  it("starts none when one is refused, and says which", async () => {
    const before = await threadCount();
    const good = asking("@ say never");
    const bad = [
      [{ ...good, assistant_id: "missing" }, 404, "not_found"],
      [{ ...good, durability: "exit" }, 422, "unsupported_option"],
      [{ ...good, input: { messages: [{ type: "remove", id: "gone" }] } }, 422, "invalid_request"],
      [{ assistant_id: "lead_agent" }, 422, "invalid_request"],
      [{ ...good, interrupt_before: ["no_node"] }, 422, "invalid_request"],
      [{ ...good, interrupt_after: ["model", "no_node"] }, 422, "invalid_request"],
      [{ ...good, checkpoint: { checkpoint_ns: "child:1" } }, 422, "unsupported_option"],
      [{ ...good, checkpoint_id: "" }, 422, "invalid_request"],
      [{ ...good, checkpoint: { checkpoint_id: "c1" } }, 404, "not_found"],
    ] as const;
    for (const [body, status, code] of bad) {
      const response = await send("POST", "/runs/batch", [good, body], BOB);
      expect([response.status, await response.json()]).toMatchObject([status, { code, details: { index: 1 } }]);
    }
    expect((await send("POST", "/runs/batch", [], BOB)).status).toBe(422);
    expect((await send("POST", "/runs/batch", Array(101).fill(good), BOB)).status).toBe(422);
    expect(await threadCount()).toBe(before);
  });
});

/** Of an owner who starts no stateless run meanwhile. */
async function threadCount(): Promise<number> {
  const counted = await send("POST", "/threads/count", { metadata: { deputy_stateless: true } }, BOB);
  return counted.json();
}
