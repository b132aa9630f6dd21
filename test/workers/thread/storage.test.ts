import { env, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { OPERATIONS } from "../../../src/gateway/app.ts";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import { eventually } from "../../support/eventually.ts";
import { ALICE, asking, BOB, newThread, send, sendJson } from "../../support/http.ts";
import { ROUTE_SAMPLES } from "../../support/route-samples.ts";

/** Every route of a thread that must exist already; none can be forgotten. */
const THREAD_ROUTES = OPERATIONS.map(({ spec }) => spec).filter((spec) => spec.path.startsWith("/threads/:thread_id"));

async function tablesOf(owner: string, threadId: string): Promise<string[]> {
  const stub = env.THREADS.get(env.THREADS.idFromName(threadObjectName(owner, threadId)));
  return runInDurableObject(stub, async (_instance, { storage }) => {
    expect(await storage.getAlarm()).toBeNull();
    const rows = storage.sql.exec<{ name: string }>(
      "SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'",
    );
    return rows.toArray().map(({ name }) => name);
  });
}

interface Asked {
  readonly threadId: string;
  readonly runId: string;
  readonly headers: Record<string, string>;
}

async function ask(
  spec: (typeof THREAD_ROUTES)[number],
  { threadId, runId, headers }: Asked,
): Promise<[number, unknown]> {
  const sample = ROUTE_SAMPLES[spec.id]!;
  const path = sample.path.replace("/threads/t", `/threads/${threadId}`).replace("/runs/r", `/runs/${runId}`);
  const body = sample.json ?? (sample.body === undefined ? undefined : sample.body);
  const answer = await send(spec.method.toUpperCase(), path, body, headers);
  const text = await answer.text();
  const { request_id: _, ...told } = JSON.parse(text || "{}") as Record<string, unknown>;
  return [answer.status, JSON.parse(JSON.stringify(told).replaceAll(threadId, "T").replaceAll(runId, "R"))];
}

describe("a thread that does not exist", () => {
  it.each(THREAD_ROUTES.map((spec) => [spec.id, spec] as const))(
    "asked for by %s answers 404 and leaves no table and no alarm behind",
    async (_id, spec) => {
      const threadId = `missing-${crypto.randomUUID()}`;
      const [status] = await ask(spec, { threadId, runId: "r", headers: ALICE });
      expect(status).toBe(404);
      expect(await tablesOf("alice", threadId)).toEqual([]);
    },
  );

  it("leaves nothing behind when its create is refused", async () => {
    const threadId = `refused-${crypto.randomUUID()}`;
    const body = { thread_id: threadId, metadata: { big: "x".repeat(70_000) } };
    expect((await send("POST", "/threads", body)).status).toBe(413);
    expect(await tablesOf("alice", threadId)).toEqual([]);
  });

  it("still does not exist when the run that would have made it was refused", async () => {
    const threadId = `refused-${crypto.randomUUID()}`;
    const body = {
      assistant_id: "lead_agent",
      if_not_exists: "create",
      input: { messages: [{ type: "remove", id: "nowhere" }] },
    };
    expect((await send("POST", `/threads/${threadId}/runs`, body)).status).toBe(422);
    expect((await send("GET", `/threads/${threadId}`)).status).toBe(404);
    expect(await sendJson("POST", "/threads/search", { ids: [threadId] })).toEqual([]);
    const made = await send("POST", `/threads/${threadId}/runs/wait`, {
      ...asking("@ say hi"),
      if_not_exists: "create",
    });
    expect(made.status).toBe(200);
    expect((await made.json<{ messages: unknown[] }>()).messages).toHaveLength(2);
  });

  it("is what a deleted thread is: no table, no alarm, 404", async () => {
    const threadId = await newThread();
    await (await send("POST", `/threads/${threadId}/runs/wait`, asking("@ say hi"))).text();
    expect(await tablesOf("alice", threadId).catch(() => ["an alarm was set"])).not.toEqual([]);
    expect((await send("DELETE", `/threads/${threadId}`)).status).toBe(204);
    expect(await tablesOf("alice", threadId)).toEqual([]);
    expect((await send("GET", `/threads/${threadId}`)).status).toBe(404);
  });
});

describe("deleting a thread", () => {
  it("ends its live run, and nothing that was under way writes storage or an alarm back", async () => {
    const threadId = await newThread();
    const script = '@ & call bash {"command": "sleep 15"}\n@ & call bash {"command": "echo quick"}\n@ say never';
    const { run_id: runId } = await sendJson<{ run_id: string }>("POST", `/threads/${threadId}/runs`, asking(script));
    await eventually(
      () => sendJson<{ event_type: string }[]>("GET", `/threads/${threadId}/runs/${runId}/events`),
      (rows) => rows.some((row) => row.event_type === "llm.tool.result"),
    );
    expect((await send("DELETE", `/threads/${threadId}`)).status).toBe(204);
    expect((await send("GET", `/threads/${threadId}`)).status).toBe(404);
    // Time for what might still be under way: the run's end, its flush, its pruning.
    await new Promise((next) => void setTimeout(next, 500));
    expect(await tablesOf("alice", threadId)).toEqual([]);
    const rows = await env.DB.prepare("SELECT count(*) AS n FROM run_events WHERE thread_id = ?")
      .bind(threadId)
      .first<{ n: number }>();
    expect(rows!.n).toBe(0);
    expect(await sendJson("POST", "/threads/search", { ids: [threadId] })).toEqual([]);
  });

  it("lets a new thread of the same id start empty", async () => {
    const threadId = `again-${crypto.randomUUID()}`;
    await sendJson("POST", "/threads", { thread_id: threadId });
    await (await send("POST", `/threads/${threadId}/runs/wait`, asking("@ say old"))).text();
    await send("DELETE", `/threads/${threadId}`);
    await sendJson("POST", "/threads", { thread_id: threadId });
    expect(await sendJson("GET", `/threads/${threadId}/runs`)).toEqual([]);
    const values = await sendJson<{ messages: unknown[] }>(
      "POST",
      `/threads/${threadId}/runs/wait`,
      asking("@ say new"),
    );
    expect(values.messages).toHaveLength(2);
    const messages = await sendJson<{ seq: number }[]>("GET", `/threads/${threadId}/messages`);
    expect(messages).toHaveLength(2);
  });
});

describe("a foreign owner (P7)", () => {
  it.each(THREAD_ROUTES.map((spec) => [spec.id, spec] as const))(
    "gets from %s for another's thread and run exactly what a missing one gives, and changes nothing",
    async (_id, spec) => {
      const threadId = await newThread();
      await (await send("POST", `/threads/${threadId}/runs/wait`, asking("@ say mine"))).text();
      const [run] = await sendJson<{ run_id: string }[]>("GET", `/threads/${threadId}/runs`);
      const before = await sendJson("GET", `/threads/${threadId}/state`);
      const foreign = await ask(spec, { threadId, runId: run!.run_id, headers: BOB });
      const missing = await ask(spec, { threadId: crypto.randomUUID(), runId: crypto.randomUUID(), headers: BOB });
      expect(foreign).toEqual(missing);
      expect(foreign[0]).toBe(404);
      expect(await sendJson("GET", `/threads/${threadId}/state`)).toEqual(before);
      expect(await tablesOf("bob", threadId)).toEqual([]);
    },
  );
});
