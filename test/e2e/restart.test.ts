import { afterAll, beforeAll, expect, it } from "vitest";
import { RestartHarness } from "../support/restart-harness.ts";

interface Message {
  readonly id: string;
  readonly type: string;
  readonly content: string;
}
interface State {
  readonly values: { readonly messages?: Message[] };
}

const deputy = new RestartHarness();

beforeAll(() => deputy.start());
afterAll(() => deputy.close());

/** Six calls in one answer; the first sleeps longest, so they finish in another order than they were made. */
const SIX = Array.from({ length: 6 }, (_, index) => {
  const command = `sleep 0.${6 - index}; echo result-${index}`;
  return `@ & call bash ${JSON.stringify({ command })}`;
}).join("\n");

async function run(threadId: string, content: string): Promise<string> {
  const body = {
    assistant_id: "lead_agent",
    stream_mode: ["values", "updates", "messages-tuple"],
    input: { messages: [{ type: "human", content }] },
  };
  return deputy.text("POST", `/threads/${threadId}/runs/stream`, { body });
}

it("frames, ids and the order of parallel results read the same after a restart (R185)", async () => {
  const { thread_id: threadId } = await deputy.json<{ thread_id: string }>("POST", "/threads", {});
  const live = await run(threadId, `${SIX}\n@ say done`);
  const runId = /"run_id":"([^"]+)"/.exec(live)![1]!;
  const before = await deputy.json<State>("GET", `/threads/${threadId}/state`);
  const historyBefore = await deputy.text("POST", `/threads/${threadId}/history`, { body: { limit: 50 } });
  const results = before.values
    .messages!.filter((message) => message.type === "tool")
    .map((message) => message.content);
  expect(results.map((text) => /result-\d/.exec(text)?.[0])).toEqual(
    [0, 1, 2, 3, 4, 5].map((index) => `result-${index}`),
  );

  await deputy.restart();

  for (let read = 0; read < 10; read += 1) {
    expect(await deputy.json<State>("GET", `/threads/${threadId}/state`)).toEqual(before);
  }
  expect(await deputy.text("POST", `/threads/${threadId}/history`, { body: { limit: 50 } })).toBe(historyBefore);
  expect(before.values.messages!.every((message) => live.includes(message.id))).toBe(true);
  const replayed = await deputy.text("GET", `/threads/${threadId}/runs/${runId}/stream`, {
    headers: { "last-event-id": "-1" },
  });
  expect(replayed).toBe(live);
});

it("the thread goes on after a restart where it was", async () => {
  const { thread_id: threadId } = await deputy.json<{ thread_id: string }>("POST", "/threads", {});
  await run(threadId, "@ say first");
  await deputy.restart();
  await run(threadId, "@ say second");
  const { values } = await deputy.json<State>("GET", `/threads/${threadId}/state`);
  expect(values.messages!.map((message) => message.content)).toEqual([
    "@ say first",
    "first",
    "@ say second",
    "second",
  ]);
});
