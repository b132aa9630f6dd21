/** Versions of an owner's assistants, and the threads that go with one: over HTTP routes, real D1 and real objects. */
import { env } from "cloudflare:test";
import { beforeEach, describe, expect, it } from "vitest";
import { ASSISTANT_VERSIONS_MAX } from "../../../src/domain/assistant/assistant.ts";
import { DurableThreadDirectory } from "../../../src/platform/thread-directory.ts";
import type { Assistant, AssistantVersion } from "../../../src/protocol/assistants.ts";
import { ask, failure, gatewayDeps } from "../../support/gateway.ts";

beforeEach(async () => {
  await env.DB.exec("DELETE FROM assistants");
  await env.DB.exec("DELETE FROM assistant_versions");
});

let clock = 1_700_000_000_000;
const deps = gatewayDeps({ now: () => (clock += 1_000), threads: new DurableThreadDirectory(env.THREADS) });

function call(method: string, path: string, json?: unknown): Promise<Response> {
  return ask(deps, path, { method, ...(json === undefined ? {} : { json }) });
}

async function read<T>(method: string, path: string, json?: unknown): Promise<T> {
  const answer = await call(method, path, json);
  expect(answer.status).toBe(200);
  return answer.json<T>();
}

const create = (json: object) =>
  read<Assistant>("POST", "/assistants", { graph_id: "echo", assistant_id: "mine", ...json });
const patch = (json: object) => read<Assistant>("PATCH", "/assistants/mine", json);
const versions = (json: object = {}) => read<AssistantVersion[]>("POST", "/assistants/mine/versions", json);
const numbers = async (json: object = {}) => (await versions(json)).map(({ version }) => version);
const latest = (version: number) => read<Assistant>("POST", "/assistants/mine/latest", { version });

describe("POST /assistants/{id}/versions", () => {
  it("lists each change whole, newest first, by page and by metadata", async () => {
    const first = await create({ name: "one", metadata: { team: "a" }, config: { tags: ["x"] } });
    const second = await patch({ name: "two", metadata: { team: "b" }, context: { k: 1 } });
    const { updated_at: at1, ...one } = first;
    const { updated_at: at2, ...two } = second;
    expect(await versions()).toEqual([
      { ...two, created_at: at2 },
      { ...one, created_at: at1 },
    ]);
    expect(await numbers({ metadata: { team: "a" } })).toEqual([1]);
    expect(await numbers({ metadata: { team: "nobody" } })).toEqual([]);
    const page = await call("POST", "/assistants/mine/versions", { limit: 1, offset: 1 });
    expect(await page.json<AssistantVersion[]>()).toMatchObject([{ version: 1 }]);
    expect(page.headers.get("x-pagination-total")).toBe("2");
  });

  it("P8 keeps the newest, and lets the oldest go", async () => {
    await create({});
    for (let change = 1; change <= ASSISTANT_VERSIONS_MAX; change += 1) await patch({ name: `change ${change}` });
    const kept = await numbers({ limit: 100 });
    expect([kept.length, kept[0], kept.at(-1)]).toEqual([ASSISTANT_VERSIONS_MAX, ASSISTANT_VERSIONS_MAX + 1, 2]);
    expect(await failure(await call("POST", "/assistants/mine/latest", { version: 1 }))).toEqual([404, "not_found"]);
  });

  it("the deployment's have the one that configuration has now", async () => {
    const [only, ...more] = await read<AssistantVersion[]>("POST", "/assistants/echo/versions", {});
    expect([only?.graph_id, only?.version, more]).toEqual(["echo", 1, []]);
  });

  it("a row that a Worker from before versions changed loses neither that change nor the next", async () => {
    await create({ name: "one" });
    await env.DB.exec("UPDATE assistants SET version = 2, name = 'old worker' WHERE assistant_id = 'mine'");
    expect((await versions()).map(({ name }) => name)).toEqual(["old worker", "one"]);
    await patch({ name: "three" });
    expect((await versions()).map(({ version, name }) => [version, name])).toEqual([
      [3, "three"],
      [2, "old worker"],
      [1, "one"],
    ]);
  });

  it("an assistant that was deleted and made again has no version of the old one", async () => {
    await create({ name: "one" });
    await patch({ name: "two" });
    expect((await call("DELETE", "/assistants/mine")).status).toBe(204);
    await create({ name: "again" });
    expect((await versions()).map(({ name }) => name)).toEqual(["again"]);
    // Deleted by a Worker from before versions: the rows are still there.
    await env.DB.exec("DELETE FROM assistants WHERE assistant_id = 'mine'");
    await create({ name: "third" });
    expect((await versions()).map(({ name }) => name)).toEqual(["third"]);
  });
});

describe("POST /assistants/{id}/latest", () => {
  it("makes an earlier version the current one, whole; the next change is a version later than all", async () => {
    await create({ name: "one", description: "first", metadata: { a: 1 }, config: { tags: ["x"] }, context: { c: 1 } });
    await patch({ name: "two", description: "second", metadata: { b: 2 }, config: {}, context: {} });
    const chosen = await latest(1);
    const { name, description, metadata, config, context, version } = chosen;
    expect({ name, description, metadata, config, context, version }).toEqual({
      name: "one",
      description: "first",
      metadata: { a: 1 },
      config: { tags: ["x"] },
      context: { c: 1 },
      version: 1,
    });
    expect(await read("GET", "/assistants/mine")).toEqual(chosen);
    expect(await numbers()).toEqual([2, 1]);
    expect((await patch({ name: "three" })).version).toBe(3);
    expect((await versions()).map((each) => [each.version, each.name, each.metadata])).toEqual([
      [3, "three", { a: 1 }],
      [2, "two", { a: 1, b: 2 }],
      [1, "one", { a: 1 }],
    ]);
  });

  it.each<[string, unknown, number, string]>([
    ["a version nobody made", { version: 7 }, 404, "Assistant version not found"],
    ["no version", {}, 422, "body.version"],
    ["a version that is no number", { version: "1" }, 422, "body.version"],
    ["version 0", { version: 0 }, 422, "body.version"],
  ])("%s is refused", async (_what, body, status, message) => {
    await create({});
    const answer = await call("POST", "/assistants/mine/latest", body);
    expect(answer.status).toBe(status);
    expect((await answer.json<{ message: string }>()).message).toContain(message);
  });

  it("a version whose graph is served no more is refused by the graph's name", async () => {
    await create({ graph_id: "lead_agent" });
    await patch({ graph_id: "echo" });
    await env.DB.exec("UPDATE assistant_versions SET graph_id = 'gone' WHERE assistant_id = 'mine' AND version = 1");
    const answer = await call("POST", "/assistants/mine/latest", { version: 1 });
    expect(answer.status).toBe(422);
    expect((await answer.json<{ message: string }>()).message).toContain("there is no graph 'gone'");
    expect((await read<Assistant>("GET", "/assistants/mine")).version).toBe(2);
  });
});

describe("POST /assistants/search", () => {
  it("`select` names the fields of the answer", async () => {
    await create({ name: "Chosen" });
    const found = await read("POST", "/assistants/search", { name: "chosen", select: ["name", "version"] });
    expect(found).toEqual([{ name: "Chosen", version: 1 }]);
    expect(await failure(await call("POST", "/assistants/search", { select: ["secret"] }))).toEqual([
      422,
      "invalid_request",
    ]);
  });
});

describe("DELETE /assistants/{id}?delete_threads=true", () => {
  it("deletes the owner's threads whose metadata names it, and nobody else's", async () => {
    await create({});
    const thread = async (assistantId: string, key = "key-alice") => {
      const json = { metadata: { assistant_id: assistantId } };
      const made = await ask(deps, "/threads", { method: "POST", json, key });
      return (await made.json<{ thread_id: string }>()).thread_id;
    };
    const own = await Promise.all(Array.from({ length: 8 }, () => thread("mine")));
    const other = await thread("other");
    const foreign = await thread("mine", "key-bob");
    expect((await call("DELETE", "/assistants/mine?delete_threads=true")).status).toBe(204);
    for (const id of own) expect((await call("GET", `/threads/${id}`)).status).toBe(404);
    expect((await call("GET", `/threads/${other}`)).status).toBe(200);
    expect((await ask(deps, `/threads/${foreign}`, { key: "key-bob" })).status).toBe(200);
    expect((await call("GET", "/assistants/mine")).status).toBe(404);
  });

  it("a thread that could not be deleted keeps its assistant, so that the call can be made again", async () => {
    await create({});
    const json = { metadata: { assistant_id: "mine" } };
    const { thread_id } = await (await call("POST", "/threads", json)).json<{ thread_id: string }>();
    const busy = { ok: false, error: { code: "overloaded", message: "not now" } } as const;
    const threads = { stub: () => ({ deleteThread: async () => busy }) as never };
    const refused = await ask({ ...deps, threads }, "/assistants/mine?delete_threads=true", { method: "DELETE" });
    expect(await failure(refused)).toEqual([503, "overloaded"]);
    expect((await call("GET", "/assistants/mine")).status).toBe(200);
    expect((await call("DELETE", "/assistants/mine?delete_threads=true")).status).toBe(204);
    expect((await call("GET", `/threads/${thread_id}`)).status).toBe(404);
  });
});
