import { env, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import { eventually } from "../../support/eventually.ts";
import { asking, newThread, send, sendJson } from "../../support/http.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

/** `runtime.keep_alive_seconds` as it stands when nothing is configured. */
const KEEP_ALIVE_MS = 30_000;

/** The real D1, of which no batch ends while `isHanging`. */
function hangingWhile(isHanging: () => boolean): D1Database {
  return new Proxy(env.DB, {
    get: (db, name) => {
      if (name !== "batch") return Reflect.get(db, name).bind(db) as unknown;
      return (statements: D1PreparedStatement[]) => {
        return isHanging() ? new Promise(() => undefined) : db.batch(statements);
      };
    },
  });
}

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

it("P1: a run's end that is on its way to D1 is looked after, also when the run's own alarm fires meanwhile", async () => {
  await withWakes(async (thread) => {
    const status = async () => {
      const row = env.DB.prepare("SELECT status FROM runs WHERE thread_id = ?1").bind(thread.threadId);
      return row.first<string>("status");
    };
    let isHanging = false;
    const runtime = await thread.create({ db: hangingWhile(() => isHanging) });
    const { runId } = await startRun(runtime, "@ say done");
    await eventually(status, (seen) => seen === "running");
    isHanging = true;
    await runtime.context.live.get(runId)!.done;
    expect(runtime.context.runs.find(runId)!.status).toBe("success");
    await thread.storage.deleteAlarm();
    await runtime.onAlarm();
    expect((await thread.storage.getAlarm())! - runtime.context.now()).toBeLessThanOrEqual(KEEP_ALIVE_MS);
    expect(await status()).toBe("running");
    // The object dies here; that alarm starts the next one.
    await (await thread.wake()).onAlarm();
    await eventually(status, (seen) => seen === "success");
  });
});
