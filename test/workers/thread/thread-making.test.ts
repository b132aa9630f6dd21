/** Threads that are made with more than a name: with a history, and with a life that ends. */
import { env, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import type { Thread } from "../../../src/protocol/threads.ts";
import { eventually } from "../../support/eventually.ts";
import { asking, newThread, send, sendJson, streamRun } from "../../support/http.ts";

const objectOf = (threadId: string) => env.THREADS.get(env.THREADS.idFromName(threadObjectName("alice", threadId)));

const rowsOf = (threadId: string, table: string) =>
  runInDurableObject(
    objectOf(threadId),
    (_instance, { storage }) => storage.sql.exec(`SELECT * FROM ${table}`).toArray().length,
  );

interface SeenState {
  readonly values: Record<string, unknown> & { readonly messages?: { content: string; id: string }[] };
  readonly next: string[];
  readonly metadata: Record<string, unknown>;
}

const stateOf = (threadId: string) => sendJson<SeenState>("GET", `/threads/${threadId}/state`);
const contentsOf = ({ values }: SeenState) => values.messages?.map(({ content }) => content);

const step = (as_node: string, values: unknown) => ({ updates: [{ values, as_node }] });
const said = (type: string, content: string) => ({ messages: [{ type, content }] });
const TALK = [
  step("__start__", said("human", "What is 1+1?")),
  step("model", said("ai", "2")),
  step("__start__", said("human", "And 2+2?")),
  step("model", said("ai", "4")),
];

describe("supersteps of a create", () => {
  it("are the thread's history, as if its graph had written it; a run goes on from there", async () => {
    const made = await sendJson<Thread>("POST", "/threads", { metadata: { mine: 1 }, supersteps: TALK });
    const { thread_id: threadId } = made;
    expect(made).toMatchObject({ status: "idle", metadata: { mine: 1 } });
    expect(contentsOf(await stateOf(threadId))).toEqual(["What is 1+1?", "2", "And 2+2?", "4"]);
    const history = await sendJson<SeenState[]>("POST", `/threads/${threadId}/history`, { limit: 10 });
    expect(history.map((state) => contentsOf(state)?.length ?? 0)).toEqual([4, 3, 2, 1]);
    const ids = history[0]!.values.messages!.map(({ id }) => id);
    expect(new Set(ids.filter((id) => typeof id === "string" && id !== "")).size).toBe(4);
    await streamRun(threadId, asking("@ say more"));
    expect(contentsOf(await stateOf(threadId))).toEqual(["What is 1+1?", "2", "And 2+2?", "4", "@ say more", "more"]);
    const listed = await sendJson<Thread[]>("POST", "/threads/search", { ids: [threadId] });
    expect(listed).toMatchObject([{ thread_id: threadId, metadata: { mine: 1 } }]);
  });

  it("are of the graph that the metadata names", async () => {
    const { thread_id: threadId } = await sendJson<Thread>("POST", "/threads", {
      metadata: { graph_id: "contextual" },
      supersteps: [step("__start__", { topic: "tea" }), step("say", { said: "with milk" })],
    });
    expect(await stateOf(threadId)).toMatchObject({ values: { topic: "tea", said: "with milk" }, next: [] });
  });

  it.each([
    ["a node that is not there", {}, [...TALK, step("no_node", said("ai", "5"))], "supersteps.4: "],
    [
      "a message that no thread takes",
      {},
      [...TALK, step("model", { messages: [{ type: "remove", id: "x" }] })],
      "supersteps.4: ",
    ],
    ["a graph that is not there", { graph_id: "gone" }, TALK, 'metadata.graph_id: no graph "gone"'],
    ["a command", {}, [{ updates: [{ as_node: "model", command: { goto: "tools" } }] }], "command: is not supported"],
    ["no update", {}, [{ updates: [] }], "body.supersteps.0.updates: "],
  ])(
    "with %s are refused whole: no thread, no checkpoint, and the id is free",
    async (_what, metadata, supersteps, why) => {
      const threadId = crypto.randomUUID();
      const refused = await send("POST", "/threads", { thread_id: threadId, metadata, supersteps });
      expect([refused.status, await refused.json()]).toMatchObject([
        422,
        { code: "invalid_request", message: expect.stringContaining(why) },
      ]);
      expect((await send("GET", `/threads/${threadId}`)).status).toBe(404);
      await sendJson("POST", "/threads", { thread_id: threadId });
      expect((await stateOf(threadId)).values).toEqual({});
      expect(await rowsOf(threadId, "checkpoints")).toBe(0);
      expect(await rowsOf(threadId, "checkpoint_chunks")).toBe(0);
    },
  );

  it("of two creates of one id at once are one's: the other is refused, or answered with it", async () => {
    const threadId = crypto.randomUUID();
    const supersteps = TALK.slice(0, 2);
    const answers = await Promise.all(
      [{ supersteps }, { supersteps }, {}, { supersteps, if_exists: "do_nothing" }].map((body) =>
        send("POST", "/threads", { thread_id: threadId, ...body }),
      ),
    );
    expect(answers.map(({ status }) => String(status)).toSorted()).toEqual(["200", "200", "409", "409"]);
    const seen = contentsOf(await stateOf(threadId)) ?? [];
    expect(answers[2]!.status === 200 ? [] : ["What is 1+1?", "2"]).toEqual(seen);
  });
});

describe("a thread's ttl", () => {
  const expire = (threadId: string) =>
    runInDurableObject(objectOf(threadId), (_instance, { storage }) => {
      storage.sql.exec("UPDATE thread SET ttl = json_set(ttl, '$.expiresAt', 1)");
    });
  const alarmOf = (threadId: string) =>
    runInDurableObject(objectOf(threadId), (_instance, { storage }) => storage.getAlarm());
  const ttlOf = async (threadId: string) => (await sendJson<Thread>("GET", `/threads/${threadId}?include=ttl`)).ttl;

  it("is shown where it is asked for, and its end has an alarm; a thread without one has neither", async () => {
    const before = Date.now();
    const { thread_id: threadId } = await sendJson<Thread>("POST", "/threads", {
      ttl: { ttl: 90, strategy: "delete" },
    });
    const shown = await ttlOf(threadId);
    expect(shown).toMatchObject({ strategy: "delete", ttl_minutes: 90 });
    const expiresAt = Date.parse(shown!.expires_at);
    expect(expiresAt).toBeGreaterThanOrEqual(before + 90 * 60_000);
    expect(await alarmOf(threadId)).toBe(expiresAt);
    expect(await sendJson("GET", `/threads/${threadId}`)).not.toHaveProperty("ttl");
    const unbounded = await newThread();
    expect([await ttlOf(unbounded), await alarmOf(unbounded)]).toEqual([null, null]);
  });

  it("that is over deletes the thread, whoever looks; one that was set anew counts from then", async () => {
    const { thread_id: threadId } = await sendJson<Thread>("POST", "/threads", { ttl: 5 });
    await streamRun(threadId, asking("@ say kept"));
    await send("PATCH", `/threads/${threadId}`, { ttl: 600 });
    expect(await ttlOf(threadId)).toMatchObject({ ttl_minutes: 600 });
    // The alarm of the first life finds nothing to do.
    await runDurableObjectAlarm(objectOf(threadId));
    expect((await send("GET", `/threads/${threadId}`)).status).toBe(200);
    await expire(threadId);
    await runDurableObjectAlarm(objectOf(threadId));
    expect((await send("GET", `/threads/${threadId}`)).status).toBe(404);
    expect(await sendJson("POST", "/threads/search", { ids: [threadId] })).toEqual([]);
    const tables = await runInDurableObject(objectOf(threadId), (_instance, { storage }) =>
      storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'thread'").toArray(),
    );
    expect([tables, await alarmOf(threadId)]).toEqual([[], null]);
  });

  it("waits for a run that is active; its end is the thread's", async () => {
    const { thread_id: threadId } = await sendJson<Thread>("POST", "/threads", { ttl: 5 });
    const run = await sendJson<{ run_id: string }>("POST", `/threads/${threadId}/runs`, {
      ...asking("@ say never"),
      after_seconds: 3_600,
    });
    await expire(threadId);
    await runDurableObjectAlarm(objectOf(threadId));
    expect((await send("GET", `/threads/${threadId}`)).status).toBe(200);
    expect((await send("POST", `/threads/${threadId}/runs/${run.run_id}/cancel`)).status).toBe(202);
    await eventually(
      async () => (await send("GET", `/threads/${threadId}`)).status,
      (status) => status === 404,
      30_000,
    );
  });

  it.each([[0], [-1], ["60"], [{ ttl: 0 }], [{ ttl: 5, strategy: "keep_latest" }], [{}], [6_000_000]])(
    "of %j is refused with what is allowed",
    async (ttl) => {
      for (const [method, path] of [
        ["POST", "/threads"],
        ["PATCH", `/threads/${await newThread()}`],
      ] as const) {
        const refused = await send(method, path, { metadata: {}, ttl });
        const message = expect.stringMatching(/^body\.ttl(\.ttl)?: /);
        expect([refused.status, await refused.json()]).toMatchObject([422, { code: "invalid_request", message }]);
      }
    },
  );
});

describe("a list of runs", () => {
  it("has the fields that were selected; another name is refused with those there are", async () => {
    const threadId = await newThread();
    await streamRun(threadId, asking("@ say one"));
    const [whole] = await sendJson<Record<string, unknown>[]>("GET", `/threads/${threadId}/runs`);
    const { run_id, status } = whole!;
    const selected = await sendJson("GET", `/threads/${threadId}/runs?select=run_id&select=status`);
    expect(selected).toEqual([{ run_id, status }]);
    expect(await sendJson("GET", `/threads/${threadId}/runs?select=metadata`)).toEqual([
      { metadata: whole!["metadata"] },
    ]);
    const refused = await send("GET", `/threads/${threadId}/runs?select=nothing`);
    expect([refused.status, await refused.json()]).toMatchObject([
      422,
      { message: expect.stringMatching(/^query\.select: must be one of .*"?run_id"?/) },
    ]);
  });
});
