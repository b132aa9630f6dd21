import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import { ok } from "../../../src/domain/shared/result.ts";
import { D1RunEventLog } from "../../../src/platform/d1/run-event-log.ts";
import type { RunEvent, RunEventRow } from "../../../src/protocol/run-events.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ask, failure, gatewayDeps } from "../../support/gateway.ts";

const AT = "2026-01-01T00:00:00.000Z";
const log = new D1RunEventLog(env.DB);

function event(seq: number, over: Partial<RunEvent> = {}): RunEvent {
  const base = {
    event_type: "subagent.step",
    category: "subagent",
    content: "c",
    metadata: { task_id: "call_1" },
  } as const;
  return { seq, run_id: "r", ...base, created_at: AT, ...over };
}

/** A thread whose object holds events that reach D1 only when it is told to flush. */
function thread(threadId: string, events: RunEvent[]) {
  const run = { run_id: "r", assistant_id: "a", status: "running", metadata: {}, error: null } as const;
  return new FakeThreads({
    flushEvents: async ({ owner }) => {
      const runs = [{ ...run, created_at: AT, updated_at: AT }];
      await log.flush({ owner, thread_id: threadId }, { epoch: 1, events, runs });
      return ok(null);
    },
  });
}

it("R116: flushes the object's outbox before it reads, so the tail is never missing", async () => {
  const deps = gatewayDeps({ threads: thread("tail", [event(1), event(2)]) });
  const answer = await ask(deps, "/threads/tail/runs/r/events");
  expect((await answer.json<RunEventRow[]>()).map((row) => row.seq)).toEqual([1, 2]);
});

it("R120: pages of one delegation lead to its last step; the header says when there is more", async () => {
  const events = Array.from({ length: 10 }, (_, index) =>
    event(index + 1, { metadata: { task_id: index % 2 === 0 ? "call_1" : "call_2" } }),
  );
  const deps = gatewayDeps({ threads: thread("pages", events) });
  const seqs: number[] = [];
  let after: string | null = "0";
  for (let page = 0; after !== null && page < 10; page++) {
    const query = `after_seq=${after}&task_id=call_1&limit=2&event_types=subagent.step,subagent.end`;
    const answer = await ask(deps, `/threads/pages/runs/r/events?${query}`);
    seqs.push(...(await answer.json<RunEventRow[]>()).map((row) => row.seq));
    after = answer.headers.get("x-pagination-next");
  }
  expect(seqs).toEqual([1, 3, 5, 7, 9]);
});

it("R119: the message feed leaves a delegation's steps out", async () => {
  const message = { category: "message", event_type: "llm.ai.response", metadata: {} } as const;
  const deps = gatewayDeps({ threads: thread("feed", [event(1, message), event(2), event(3, message)]) });
  const answer = await ask(deps, "/threads/feed/messages");
  expect((await answer.json<RunEventRow[]>()).map((row) => row.seq)).toEqual([1, 3]);
});

it.each([
  "/threads/t/runs/r/events?limit=0",
  "/threads/t/runs/r/events?limit=2001",
  "/threads/t/runs/r/events?after_seq=-1",
  "/threads/t/runs/r/events?after_seq=x",
  "/threads/t/runs/r/events?after_seq=1&after_seq=2",
  "/threads/t/messages?limit=201",
  "/threads/t/messages?before_seq=5&after_seq=1",
])("refuses %s", async (path) => {
  const threads = new FakeThreads();
  expect(await failure(await ask(gatewayDeps({ threads }), path))).toEqual([422, "invalid_request"]);
  expect(threads.calls).toEqual([]);
});

it("P7: a run of another thread, an unknown run and a thread of another owner are all 404", async () => {
  const deps = gatewayDeps({ threads: thread("mine", [event(1)]) });
  expect((await ask(deps, "/threads/mine/runs/r/events")).status).toBe(200);
  expect(await failure(await ask(deps, "/threads/mine/runs/other/events"))).toEqual([404, "not_found"]);
  expect(await failure(await ask(gatewayDeps(), "/threads/mine/runs/r/events", { key: "key-bob" }))).toEqual([
    404,
    "not_found",
  ]);
});
