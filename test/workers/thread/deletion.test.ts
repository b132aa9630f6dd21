import { env, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import { eventually } from "../../support/eventually.ts";
import { asking, newThread, send, sendJson } from "../../support/http.ts";

const SLOW = '@ call bash {"command": "sleep 15"}\n@ say never';

function tablesOf(threadId: string): Promise<string[]> {
  const stub = env.THREADS.get(env.THREADS.idFromName(threadObjectName("alice", threadId)));
  return runInDurableObject(stub, (_instance, { storage }) =>
    storage.sql
      .exec<{ name: string }>(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
      )
      .toArray()
      .map(({ name }) => name),
  );
}

it("a run or an edit that meets the deletion of its thread is refused or gone with it: nothing is left behind", async () => {
  for (let round = 0; round < 5; round += 1) {
    const threadId = await newThread();
    const [deleted, ...others] = await Promise.all([
      send("DELETE", `/threads/${threadId}`),
      send("POST", `/threads/${threadId}/runs`, asking(SLOW)),
      send("PATCH", `/threads/${threadId}`, { metadata: { late: true } }),
      send("POST", `/threads/${threadId}/runs`, asking(SLOW)),
    ]);
    expect(deleted.status).toBe(204);
    expect(others.map(({ status }) => status).filter((status) => ![200, 404, 409].includes(status))).toEqual([]);
    expect((await send("GET", `/threads/${threadId}`)).status).toBe(404);
    await eventually(
      () => tablesOf(threadId),
      (tables) => tables.length === 0,
    );
    expect(await sendJson("POST", "/threads/search", { ids: [threadId] })).toEqual([]);
  }
});
