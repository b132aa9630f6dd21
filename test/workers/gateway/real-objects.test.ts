/** The whole Worker: gateway, thread object and D1 together, as a client meets them. */
import { SELF } from "cloudflare:test";
import { expect, it } from "vitest";
import type { RunEventRow } from "../../../src/protocol/run-events.ts";
import type { Run } from "../../../src/protocol/runs.ts";
import type { Thread } from "../../../src/protocol/threads.ts";
import type { Failure } from "../../support/gateway.ts";

let made = 0;
const fresh = () => `real-${made++}`;
const RUN = { assistant_id: "lead_agent", input: { messages: [{ role: "user", content: "hello" }] } };

function call(method: string, path: string, over: { json?: unknown; body?: string; key?: string } = {}) {
  const { json, key = "key-alice" } = over;
  const body = json === undefined ? over.body : JSON.stringify(json);
  const headers = { "x-api-key": key, "content-type": "application/json" };
  return SELF.fetch(`http://deputy.test${path}`, { method, headers, ...(body === undefined ? {} : { body }) });
}

it("P7: a foreign thread answers exactly like a missing one, on every route that reads or writes it", async () => {
  const id = fresh();
  await call("POST", "/threads", { json: { thread_id: id } });
  await call("PUT", `/threads/${id}/files/a.txt`, { body: "secret" });
  const done = await call("POST", `/threads/${id}/runs/wait`, { json: RUN });
  await done.text();
  const [run] = await (await call("GET", `/threads/${id}/runs`)).json<Run[]>();
  const routes: [string, string, object?][] = [
    ["GET", ""],
    ["PATCH", "", { metadata: { x: 1 } }],
    ["DELETE", ""],
    ["GET", "/state"],
    ["POST", "/state", { values: {} }],
    ["POST", "/history", {}],
    ["POST", "/runs", RUN],
    ["POST", "/runs/stream", RUN],
    ["POST", "/runs/wait", RUN],
    ["GET", "/runs"],
    ["GET", `/runs/${run?.run_id}`],
    ["DELETE", `/runs/${run?.run_id}`],
    ["POST", `/runs/${run?.run_id}/cancel`],
    ["GET", `/runs/${run?.run_id}/join`],
    ["GET", `/runs/${run?.run_id}/stream`],
    ["GET", `/runs/${run?.run_id}/events`],
    ["GET", "/messages"],
    ["GET", "/files/a.txt"],
    ["DELETE", "/files/a.txt"],
  ];
  for (const [method, path, json] of routes) {
    const seen = async (thread: string) => {
      const answer = await call(method, `/threads/${thread}${path}`, { key: "key-bob", ...(json ? { json } : {}) });
      const { code, message } = await answer.json<Failure>();
      return [answer.status, code, message.replaceAll(thread, "T")];
    };
    const foreign = await seen(id);
    expect(foreign, `${method} ${path}`).toEqual(await seen("never-made"));
    expect(foreign[0]).toBe(404);
  }
  expect((await call("GET", `/threads/${id}/files/a.txt`)).status).toBe(200);
});

it("two owners have a thread of the same name, each their own", async () => {
  const id = fresh();
  await call("POST", "/threads", { json: { thread_id: id, metadata: { of: "alice" } } });
  const other = await call("POST", "/threads", { json: { thread_id: id, metadata: { of: "bob" } }, key: "key-bob" });
  expect(other.status).toBe(200);
  expect(await (await call("GET", `/threads/${id}`)).json()).toMatchObject({ metadata: { of: "alice" } });
});

it("a created thread is found at once, a deleted one no more", async () => {
  const id = fresh();
  const json = { metadata: { only: id } };
  await call("POST", "/threads", { json: { thread_id: id, ...json } });
  expect(await (await call("POST", "/threads/search", { json })).json<Thread[]>()).toMatchObject([{ thread_id: id }]);
  expect((await call("DELETE", `/threads/${id}`)).status).toBe(204);
  expect(await (await call("POST", "/threads/search", { json })).json()).toEqual([]);
  expect((await call("GET", `/threads/${id}`)).status).toBe(404);
});

it("a stateless run keeps its thread out of lists and is followed by its Content-Location", async () => {
  const before = await (await call("POST", "/threads/count", { json: {} })).json<number>();
  const created = await call("POST", "/runs", { json: RUN });
  expect(created.status).toBe(200);
  const location = created.headers.get("content-location") ?? "";
  const joined = await call("GET", `${location}/join`);
  expect(await joined.json()).toMatchObject({ messages: [{ type: "human", content: "hello" }, { type: "ai" }] });
  expect(await (await call("POST", "/threads/count", { json: {} })).json()).toBe(before);
  const marked = { json: { metadata: { deputy_stateless: true } } };
  expect(await (await call("POST", "/threads/count", marked)).json()).toBeGreaterThan(0);
});

it.each(["/runs", "/runs/stream", "/runs/wait"])(
  "POST %s that the thread's object refuses leaves no thread behind",
  async (path) => {
    const marked = { json: { metadata: { deputy_stateless: true } } };
    const before = await (await call("POST", "/threads/count", marked)).json<number>();
    for (const over of [
      { input: null },
      { input: { messages: [{ role: "nobody", content: "x" }] } },
      { input: { delegations: [] } },
      { metadata: { big: "x".repeat(1_500_000) } },
    ]) {
      const refused = await call("POST", path, { json: { ...RUN, ...over } });
      expect([413, 422]).toContain(refused.status);
      await refused.text();
    }
    expect(await (await call("POST", "/threads/count", marked)).json()).toBe(before);
  },
);

it("the events of a run that just ended are all there: start, messages, end, without gaps", async () => {
  const id = fresh();
  const json = { ...RUN, if_not_exists: "create" };
  await (await call("POST", `/threads/${id}/runs/wait`, { json })).text();
  const [run] = await (await call("GET", `/threads/${id}/runs`)).json<Run[]>();
  const rows = await (await call("GET", `/threads/${id}/runs/${run?.run_id}/events`)).json<RunEventRow[]>();
  expect(rows.map((row) => row.seq)).toEqual(rows.map((_, index) => index + 1));
  expect(rows.map((row) => row.event_type)).toEqual(["run.start", "llm.human.input", "llm.ai.response", "run.end"]);
});

it("files: a listing of the root, of a directory, and the bytes back", async () => {
  const id = fresh();
  await call("POST", "/threads", { json: { thread_id: id } });
  expect((await call("PUT", `/threads/${id}/files/d/%C3%BC%20x.txt`, { body: "1" })).status).toBe(201);
  expect((await call("PUT", `/threads/${id}/files/d/%C3%BC%20x.txt`, { body: "12" })).status).toBe(200);
  expect(await (await call("GET", `/threads/${id}/files/d/%C3%BC%20x.txt`)).text()).toBe("12");
  expect(await (await call("GET", `/threads/${id}/files`)).json()).toMatchObject({
    entries: [{ path: "/workspace/d", kind: "directory" }],
  });
  expect(await (await call("GET", `/threads/${id}/files/d`)).json()).toMatchObject({
    entries: [{ path: "/workspace/d/ü x.txt", kind: "file", size: 2 }],
  });
});
