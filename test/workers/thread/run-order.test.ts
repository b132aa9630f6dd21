import { env, runInDurableObject } from "cloudflare:test";
import { v7 } from "uuid";
import { describe, expect, it } from "vitest";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import { asking, newThread, sendJson, streamRun } from "../../support/http.ts";

interface Message {
  readonly content: string;
}

describe("a clock that was set back", () => {
  it("leaves runs in the order of their acceptance, so that the active run is the newest row (P1)", async () => {
    const threadId = await newThread();
    await streamRun(threadId, asking("first"));
    const ahead = Date.now() + 3_600_000;
    const first = v7({ msecs: ahead });
    const stub = env.THREADS.get(env.THREADS.idFromName(threadObjectName("alice", threadId)));
    await runInDurableObject(stub, (_instance, { storage }) => {
      storage.sql.exec("UPDATE runs SET run_id = ?, created_at = ?", first, ahead);
    });
    for (const text of ["second", "third", "fourth"]) await streamRun(threadId, asking(text));
    const runs = await sendJson<{ kwargs: { input: { messages: Message[] } } }[]>("GET", `/threads/${threadId}/runs`);
    expect(runs.map((run) => run.kwargs.input.messages[0]?.content)).toEqual(["fourth", "third", "second", "first"]);
  });
});
