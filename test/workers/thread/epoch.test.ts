import { abortAllDurableObjects, env } from "cloudflare:test";
import { expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { asking, newThread, streamRun } from "../../support/http.ts";

async function epochInD1(threadId: string): Promise<number> {
  const statement = env.DB.prepare("SELECT epoch FROM threads WHERE owner = 'alice' AND thread_id = ?1");
  return (await statement.bind(threadId).first<number>("epoch")) ?? 0;
}

it("P3: every wake of an object takes a later epoch, so that one it replaced can no longer write to D1", async () => {
  const threadId = await newThread();
  await streamRun(threadId, asking("first"));
  const first = await epochInD1(threadId);
  await abortAllDurableObjects();
  await streamRun(threadId, asking("second"));
  const second = await eventually(
    () => epochInD1(threadId),
    (epoch) => epoch > first,
  );
  expect([first, second]).toEqual([1, 2]);
});
