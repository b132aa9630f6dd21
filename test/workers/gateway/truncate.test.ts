/** `POST /internal/truncate`: there only when it is asked for, and for the caller's own things. */
import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import { servesTestRoutes } from "../../../src/env.ts";
import { DurableThreadDirectory } from "../../../src/platform/thread-directory.ts";
import { ask, failure, gatewayDeps } from "../../support/gateway.ts";

const threads = new DurableThreadDirectory(env.THREADS);
const auth = {
  apiKeys: JSON.stringify({
    "key-alice": { owner: "truncating", role: "user" },
    "key-bob": { owner: "kept", role: "user" },
  }),
  devOwner: undefined,
};
const deps = gatewayDeps({ threads, auth, testRoutes: true, newId: () => crypto.randomUUID() });
const ALL = { runs: true, threads: true, assistants: true, checkpointer: true, store: true };

async function made(key: string) {
  const thread = await ask(deps, "/threads", { method: "POST", json: {}, key });
  const json = { graph_id: "echo" };
  const assistant = await ask(deps, "/assistants", { method: "POST", json, key });
  const { thread_id } = await thread.json<{ thread_id: string }>();
  return [`/threads/${thread_id}`, `/assistants/${(await assistant.json<{ assistant_id: string }>()).assistant_id}`];
}

const truncate = (json: object, over = deps) => ask(over, "/internal/truncate", { method: "POST", json });

it("is no route unless it was asked for, and never where Workers AI is bound", async () => {
  expect(await failure(await truncate(ALL, gatewayDeps({ threads, auth })))).toEqual([404, "not_found"]);
  expect([
    servesTestRoutes({}),
    servesTestRoutes({ TEST_ROUTES: "0" }),
    servesTestRoutes({ TEST_ROUTES: "1" }),
  ]).toEqual([false, false, true]);
  expect(servesTestRoutes({ TEST_ROUTES: "1", AI: {} as Ai })).toBe(false);
});

it("P7 clears what is the caller's and nothing else", async () => {
  const own = await made("key-alice");
  const foreign = await made("key-bob");
  const answer = await truncate(ALL);
  expect([answer.status, await answer.json()]).toEqual([200, { ok: true }]);
  for (const path of own) expect((await ask(deps, path)).status, path).toBe(404);
  for (const path of foreign) expect((await ask(deps, path, { key: "key-bob" })).status, path).toBe(200);
});

it("clears only what is named, and refuses by name what cannot be cleared alone", async () => {
  const [thread = "", assistant = ""] = await made("key-alice");
  expect((await truncate({ assistants: true, store: true })).status).toBe(200);
  expect([(await ask(deps, thread)).status, (await ask(deps, assistant)).status]).toEqual([200, 404]);
  for (const part of ["runs", "checkpointer"]) {
    expect(await failure(await truncate({ [part]: true }))).toEqual([422, "unsupported_option"]);
  }
  expect((await ask(deps, thread)).status).toBe(200);
});
