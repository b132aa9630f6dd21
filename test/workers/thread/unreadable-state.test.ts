/** A state nobody can read any more, as a damaged row or a faulty release leaves it. */
import { env, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import { asking, newThread, send, sendJson, streamRun } from "../../support/http.ts";

interface Run {
  readonly run_id: string;
  readonly status: string;
}

it("does not keep a cancelled run from ending (P1)", async () => {
  const threadId = await newThread();
  await streamRun(threadId, asking("@ say hi"));
  const [run] = await sendJson<Run[]>("GET", `/threads/${threadId}/runs`);
  const stub = env.THREADS.get(env.THREADS.idFromName(threadObjectName("alice", threadId)));
  await runInDurableObject(stub, (_instance, { storage }) => {
    storage.sql.exec("UPDATE runs SET status = 'running'");
    storage.sql.exec("UPDATE checkpoints SET body = x'00'");
  });
  expect((await send("GET", `/threads/${threadId}/state`)).status).toBe(500);
  await send("POST", `/threads/${threadId}/runs/${run!.run_id}/cancel`);
  const ended = await sendJson<Run>("GET", `/threads/${threadId}/runs/${run!.run_id}`);
  expect(ended.status).toBe("interrupted");
  expect((await send("DELETE", `/threads/${threadId}`)).status).toBe(204);
});
