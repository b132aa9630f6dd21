import { abortAllDurableObjects, env, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { EventOutbox } from "../../../src/platform/durable-storage/event-outbox.ts";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import { eventually } from "../../support/eventually.ts";
import { asking, newThread, send, streamRun } from "../../support/http.ts";

/** `runtime.frames_ttl_seconds` as it stands when nothing is configured. */
const FRAMES_TTL_MS = 3_600_000;

function stubOf(threadId: string): DurableObjectStub {
  return env.THREADS.get(env.THREADS.idFromName(threadObjectName("alice", threadId)));
}

function inObject<T>(threadId: string, act: (sql: SqlStorage) => T): Promise<T> {
  return runInDurableObject(stubOf(threadId), (_instance, { storage }) => act(storage.sql));
}

it("P1: an event that its object left in the outbox when it died reaches D1 at the next wake, whatever woke it", async () => {
  const threadId = await newThread();
  await inObject(threadId, (sql) => {
    const draft = { run_id: "run", event_type: "custom", category: "trace", content: "left", metadata: {} } as const;
    new EventOutbox(sql).append([draft], { now: 0 });
  });
  await abortAllDurableObjects();
  // Not a reader of the log: those flush by themselves.
  await send("GET", `/threads/${threadId}/state`);
  const told = env.DB.prepare("SELECT content FROM run_events WHERE thread_id = ?1").bind(threadId);
  await eventually(
    () => told.first<string>("content"),
    (content) => content === '"left"',
  );
});

it("P8: frames of a run that ended longer ago than their time to live go with an alarm", async () => {
  const threadId = await newThread();
  await streamRun(threadId, asking("hello"));
  const frames = () =>
    inObject(threadId, (sql) => sql.exec<{ n: number }>("SELECT count(*) AS n FROM frame_blocks").one().n);
  expect(await frames()).toBeGreaterThan(0);
  await runDurableObjectAlarm(stubOf(threadId));
  expect(await frames()).toBeGreaterThan(0);
  await inObject(threadId, (sql) => sql.exec("UPDATE runs SET updated_at = 0"));
  await runInDurableObject(stubOf(threadId), (_instance, { storage }) => storage.setAlarm(Date.now() + 60_000));
  await runDurableObjectAlarm(stubOf(threadId));
  expect(await frames()).toBe(0);
});

it("a thread at rest is woken once for its frames' expiry and then never again", async () => {
  const threadId = await newThread();
  await streamRun(threadId, asking("hello"));
  const alarm = () => runInDurableObject(stubOf(threadId), (_instance, { storage }) => storage.getAlarm());
  // The run's keep-alive is still set, fires once and finds nothing to keep.
  await runDurableObjectAlarm(stubOf(threadId));
  const at = await alarm();
  expect(at! - Date.now()).toBeGreaterThan(FRAMES_TTL_MS - 60_000);
  await inObject(threadId, (sql) => sql.exec("UPDATE runs SET updated_at = 0"));
  await runDurableObjectAlarm(stubOf(threadId));
  expect(await alarm()).toBeNull();
});
