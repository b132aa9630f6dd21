import { env, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import { eventually } from "../../support/eventually.ts";
import { asking, newThread, send, sendJson } from "../../support/http.ts";

/** `runtime.keep_alive_seconds` as it stands when nothing is configured. */
const KEEP_ALIVE_MS = 30_000;

function stubOf(threadId: string): DurableObjectStub {
  return env.THREADS.get(env.THREADS.idFromName(threadObjectName("alice", threadId)));
}

function alarmOf(threadId: string): Promise<number | null> {
  return runInDurableObject(stubOf(threadId), (_instance, { storage }) => storage.getAlarm());
}

it("a detached run holds an alarm within keep_alive_seconds, also behind one that fired; a thread at rest holds none so soon (P1)", async () => {
  const threadId = await newThread();
  const body = asking("@ delay 10000\n@ say a b c d");
  const { run_id: runId } = await sendJson<{ run_id: string }>("POST", `/threads/${threadId}/runs`, body);
  for (let firing = 0; firing < 3; firing += 1) {
    const at = await alarmOf(threadId);
    expect(at).not.toBeNull();
    expect(at! - Date.now()).toBeLessThanOrEqual(KEEP_ALIVE_MS);
    expect(await runDurableObjectAlarm(stubOf(threadId))).toBe(true);
  }
  await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1`);
  await runDurableObjectAlarm(stubOf(threadId));
  // What is left is the expiry of the run's frames, an hour away: a thread at rest is not kept awake.
  await eventually(
    () => alarmOf(threadId),
    (at) => at === null || at - Date.now() > 10 * KEEP_ALIVE_MS,
  );
});
