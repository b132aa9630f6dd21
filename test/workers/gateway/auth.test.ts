import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import { ok } from "../../../src/domain/shared/result.ts";
import type { ThreadAddress } from "../../../src/protocol/thread-rpc.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ask, failure, gatewayDeps, type Failure } from "../../support/gateway.ts";

const withAuth = (apiKeys: string | undefined, devOwner?: string) => gatewayDeps({ auth: { apiKeys, devOwner } });
const search = { method: "POST", json: {} } as const;

it("takes the key from Authorization: Bearer and from x-api-key, and refuses none, wrong and near ones", async () => {
  const deps = gatewayDeps();
  const answers = [
    await ask(deps, "/threads/search", search),
    await ask(deps, "/threads/search", { ...search, key: null, headers: { authorization: "Bearer key-alice" } }),
    await ask(deps, "/threads/search", { ...search, key: null, headers: { authorization: "bearer  key-alice" } }),
  ];
  expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200]);
  for (const key of [null, "", "key-alic", "key-alice2", "KEY-ALICE"]) {
    const refused = await ask(deps, "/threads/search", { ...search, key });
    expect(refused.headers.get("www-authenticate")).toBe("Bearer");
    expect(await failure(refused)).toEqual([401, "unauthorized"]);
  }
});

it("P7: ownership comes from the key alone: no header, body or path names another owner", async () => {
  const seen: ThreadAddress[] = [];
  const threads = new FakeThreads({
    getThread: async (address) => {
      seen.push(address);
      return ok({
        thread_id: "t",
        created_at: "",
        updated_at: "",
        metadata: {},
        status: "idle",
        values: {},
        interrupts: {},
      });
    },
  });
  const headers = { "deputy-address": JSON.stringify({ v: 1, owner: "bob", thread_id: "t" }), "x-owner": "bob" };
  await ask(gatewayDeps({ threads }), "/threads/t", { headers });
  await ask(gatewayDeps({ threads }), "/threads/t", { key: "key-admin" });
  expect(seen).toEqual([
    { v: 1, owner: "alice", thread_id: "t", role: "user" },
    { v: 1, owner: "root", thread_id: "t", role: "admin" },
  ]);
  expect(threads.calls.map((call) => call.owner)).toEqual(["alice", "root"]);
});

it.each([
  ["unset", undefined],
  ["empty", ""],
  ["no JSON", "key=alice"],
  ["a list", "[]"],
  ["without keys", "{}"],
  ["an unknown role", '{"k":{"owner":"a","role":"root"}}'],
  ["without owner", '{"k":{"role":"user"}}'],
  ["an empty owner", '{"k":{"owner":"","role":"user"}}'],
])("API_KEYS %s opens nothing: 503 auth_not_configured, and /ok still answers", async (_what, apiKeys) => {
  const deps = withAuth(apiKeys);
  expect(await failure(await ask(deps, "/threads/search", search))).toEqual([503, "auth_not_configured"]);
  expect((await ask(deps, "/ok")).status).toBe(200);
});

it("DEV_OWNER opens the door only while API_KEYS is unset, and only to pages of this machine", async () => {
  expect((await ask(withAuth(undefined, "local"), "/threads/search", { ...search, key: null })).status).toBe(200);
  const both = withAuth(env.API_KEYS, "local");
  expect(await failure(await ask(both, "/threads/search", { ...search, key: null }))).toEqual([401, "unauthorized"]);
  const broken = withAuth("nonsense", "local");
  expect(await failure(await ask(broken, "/threads/search", search))).toEqual([503, "auth_not_configured"]);
  const origins = [
    "http://localhost:3000",
    "http://127.0.0.1:5173",
    "https://evil.example",
    "http://localhost.evil.example",
  ];
  const statuses = [];
  for (const origin of origins) {
    const answer = await ask(withAuth(undefined, "local"), "/threads/search", { ...search, headers: { origin } });
    statuses.push(answer.status);
  }
  expect(statuses).toEqual([200, 200, 403, 403]);
});

it("never repeats a key in an answer or in the log", async () => {
  const logged: unknown[] = [];
  const threads = new FakeThreads({
    getThread: () => {
      throw new Error("boom");
    },
  });
  const deps = gatewayDeps({ threads, log: (entry) => logged.push(entry) });
  const answer = await ask(deps, "/threads/t", { headers: { authorization: "Bearer key-alice" } });
  const body = await answer.json<Failure>();
  expect(body.code).toBe("internal_error");
  expect(logged).toMatchObject([{ level: "error", request_id: body.request_id, path: "/threads/t" }]);
  expect(JSON.stringify([body, logged])).not.toContain("key-alice");
  expect(JSON.stringify(body)).not.toContain("boom");
});
