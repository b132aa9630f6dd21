import { abortAllDurableObjects, env, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import { eventually } from "../../support/eventually.ts";
import { asking, newThread, send, sendJson } from "../../support/http.ts";

interface Message {
  readonly type: string;
  readonly content: string;
}

/** Longer than the test waits for anything. */
const SLOW = '@ call bash {"command": "sleep 15"}\n@ say woke';

async function startSlow(threadId: string): Promise<string> {
  const { run_id } = await sendJson<{ run_id: string }>("POST", `/threads/${threadId}/runs`, asking(SLOW));
  await eventually(
    () => messagesOf(threadId),
    (messages) => messages.some(({ type }) => type === "ai"),
  );
  return run_id;
}

async function messagesOf(threadId: string): Promise<readonly Message[]> {
  const state = await sendJson<{ values: { messages?: readonly Message[] } }>("GET", `/threads/${threadId}/state`);
  return state.values.messages ?? [];
}

async function eventsOf(threadId: string, runId: string): Promise<string[]> {
  const rows = await sendJson<{ event_type: string }[]>("GET", `/threads/${threadId}/runs/${runId}/events`);
  return rows.map(({ event_type }) => event_type).filter((type) => type.startsWith("run."));
}

function inObject<T>(threadId: string, act: (sql: SqlStorage) => T): Promise<T> {
  const stub = env.THREADS.get(env.THREADS.idFromName(threadObjectName("alice", threadId)));
  return runInDurableObject(stub, (_instance, { storage }) => act(storage.sql));
}

describe("an object that died under its run", () => {
  it("P1: goes on with the run when it wakes, as attempt 2, and a cancel still ends it once", async () => {
    const threadId = await newThread();
    const runId = await startSlow(threadId);
    await abortAllDurableObjects();
    expect((await messagesOf(threadId)).some(({ content }) => content === "woke")).toBe(false);
    const row = await inObject(threadId, (sql) => sql.exec("SELECT status, attempt FROM runs").one());
    expect(row).toEqual({ status: "running", attempt: 2 });
    const cancel = () => send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1`);
    expect((await Promise.all([cancel(), cancel()])).map(({ status }) => status)).toEqual([204, 204]);
    expect(await eventsOf(threadId, runId)).toEqual(["run.start", "run.recovered", "run.end"]);
  });

  it("P1: finishes a cancel that was accepted before it died, instead of starting the run again", async () => {
    const threadId = await newThread();
    const runId = await startSlow(threadId);
    await inObject(threadId, (sql) => sql.exec("UPDATE runs SET cancel_requested = 1"));
    await abortAllDurableObjects();
    const run = await sendJson<{ status: string }>("GET", `/threads/${threadId}/runs/${runId}`);
    expect(run.status).toBe("interrupted");
    expect(await eventsOf(threadId, runId)).toEqual(["run.start", "run.end"]);
    expect((await messagesOf(threadId)).map(({ type }) => type)).toEqual(["human", "ai", "tool"]);
  });
});
