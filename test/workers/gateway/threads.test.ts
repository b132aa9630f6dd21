import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import { ok } from "../../../src/domain/shared/result.ts";
import { D1RunEventLog } from "../../../src/platform/d1/run-event-log.ts";
import { DurableThreadDirectory, threadObjectName } from "../../../src/platform/thread-directory.ts";
import type { Thread } from "../../../src/protocol/threads.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ask, failure, gatewayDeps } from "../../support/gateway.ts";

const AT = "2026-01-01T00:00:00.000Z";
const THREAD: Thread = {
  thread_id: "t",
  created_at: AT,
  updated_at: AT,
  metadata: {},
  status: "idle",
  values: null,
  interrupts: {},
};

it("P7: an object's name separates owners whatever their names hold", () => {
  const names = [
    threadObjectName("a", "b"),
    threadObjectName("a/b", "c"),
    threadObjectName("a", "b-c"),
    threadObjectName("a%2Fb", "c"),
  ];
  expect(new Set(names).size).toBe(names.length);
  expect(names[1]).toBe("a%2Fb/c");
  const asked: string[] = [];
  const namespace = {
    idFromName: (name: string) => asked.push(name),
    get: () => ({}),
  } as unknown as DurableObjectNamespace;
  new DurableThreadDirectory(namespace).stub("al/ice", "t");
  expect(asked).toEqual(["al%2Fice/t"]);
});

it("a thread gets the client's id, or a fresh one", async () => {
  const threads = new FakeThreads();
  const deps = gatewayDeps({ threads, newId: () => "minted" });
  const create = (json: object) => ask(deps, "/threads", { method: "POST", json });
  expect(await (await create({ thread_id: "mine" })).json()).toMatchObject({ thread_id: "mine" });
  expect(await (await create({})).json()).toMatchObject({ thread_id: "minted" });
  expect(threads.calls.map((call) => call.threadId)).toEqual(["mine", "minted"]);
  for (const thread_id of ["a b", "", "x".repeat(65), "a/b", 7]) {
    expect(await failure(await create({ thread_id }))).toEqual([422, "invalid_request"]);
  }
});

it.each([
  ["POST", "/threads/search", { select: ["values"] }, "select"],
  ["POST", "/threads/search", { values: {} }, "values"],
  ["POST", "/threads/search", { sort_by: "state_updated_at" }, "sort_by"],
  ["POST", "/threads/count", { values: {} }, "values"],
])("%s %s %j is refused by name, not ignored", async (method, path, json, field) => {
  const answer = await ask(gatewayDeps(), path, { method, json });
  expect([answer.status, await answer.json()]).toMatchObject([422, { code: "unsupported_option", details: { field } }]);
});

it("searches in pages with the headers the SDK reads, and counts", async () => {
  const log = new D1RunEventLog(env.DB);
  for (const [index, id] of ["s1", "s2", "s3"].entries()) {
    const at = `2026-01-0${index + 1}T00:00:00.000Z`;
    const thread = { created_at: at, updated_at: at, status: "idle", metadata: { kind: "paged" } } as const;
    await log.flush({ owner: "alice", thread_id: id }, { epoch: 1, events: [], thread });
  }
  const json = { metadata: { kind: "paged" }, limit: 2 };
  const first = await ask(gatewayDeps(), "/threads/search", { method: "POST", json });
  expect((await first.json<Thread[]>()).map((thread) => thread.thread_id)).toEqual(["s3", "s2"]);
  expect([first.headers.get("x-pagination-total"), first.headers.get("x-pagination-next")]).toEqual(["3", "2"]);
  const last = await ask(gatewayDeps(), "/threads/search", { method: "POST", json: { ...json, offset: 2 } });
  expect((await last.json<Thread[]>()).map((thread) => thread.thread_id)).toEqual(["s1"]);
  expect(last.headers.get("x-pagination-next")).toBe(null);
  const count = { method: "POST", json: { metadata: { kind: "paged" } } };
  expect(await (await ask(gatewayDeps(), "/threads/count", count)).json()).toBe(3);
  expect(await (await ask(gatewayDeps(), "/threads/count", { ...count, key: "key-bob" })).json()).toBe(0);
});

it("PATCH answers the thread, or nothing when the client prefers so; DELETE answers 204", async () => {
  const threads = new FakeThreads({ patchThread: async () => ok(THREAD), deleteThread: async () => ok(null) });
  const patch = (headers: Record<string, string>) =>
    ask(gatewayDeps({ threads }), "/threads/t", { method: "PATCH", json: { metadata: {} }, headers });
  const full = await patch({});
  expect([full.status, await full.json()]).toEqual([200, THREAD]);
  const minimal = await patch({ prefer: "return=minimal" });
  expect([minimal.status, await minimal.text()]).toEqual([204, ""]);
  const deleted = await ask(gatewayDeps({ threads }), "/threads/t", { method: "DELETE" });
  expect([deleted.status, await deleted.text()]).toEqual([204, ""]);
});

it("state and history hand on what was asked, and nothing else", async () => {
  const threads = new FakeThreads();
  const deps = gatewayDeps({ threads });
  await ask(deps, "/threads/t/state?subgraphs=true");
  await ask(deps, "/threads/t/state/cp-1");
  const checkpoint = { checkpoint_id: "cp-2", checkpoint_ns: "child:x" };
  await ask(deps, "/threads/t/state/checkpoint", { method: "POST", json: { checkpoint, select: ["next"] } });
  await ask(deps, "/threads/t/history", {
    method: "POST",
    json: { limit: 3, before: { configurable: { checkpoint_id: "c" } } },
  });
  await ask(deps, "/threads/t/history?limit=4&before=cp-3");
  expect(threads.calls.map((call) => [call.method, call.args[1]])).toEqual([
    ["getState", { subgraphs: true }],
    ["getState", { checkpoint_id: "cp-1", subgraphs: false }],
    ["getState", { checkpoint_id: "cp-2", checkpoint_ns: "child:x", subgraphs: false, select: ["next"] }],
    ["history", { limit: 3, before: { configurable: { checkpoint_id: "c" } } }],
    ["history", { limit: 4, before: "cp-3" }],
  ]);
});
