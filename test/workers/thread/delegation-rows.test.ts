import { env, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import { asking, newThread, sendJson, streamRun } from "../../support/http.ts";

interface EventRow {
  readonly event_type: string;
  readonly metadata: { readonly task_id?: string; readonly message_index?: number };
}

const SCRIPT = [
  "@ & delegate general-purpose :: one :: <<'ONE'",
  '@ call bash {"command": "echo 1"}',
  "@ say {{result:last}}",
  "ONE",
  "@ & delegate general-purpose :: two :: <<'TWO'",
  "@ say two",
  "TWO",
  "@ say done",
].join("\n");

it("R115: a delegation is logged as one start, its steps numbered from 0, and one end, under its task id", async () => {
  const threadId = await newThread();
  const frames = await streamRun(threadId, asking(SCRIPT));
  const { run_id } = frames[0]!.data as { run_id: string };
  const events = await sendJson<EventRow[]>("GET", `/threads/${threadId}/runs/${run_id}/events`);
  const told = events.filter(({ event_type }) => event_type.startsWith("subagent."));
  const byTask = Map.groupBy(told, ({ metadata }) => metadata.task_id);
  const lives = [...byTask.values()].map((rows) =>
    rows.map(({ event_type, metadata }) => `${event_type.slice("subagent.".length)} ${metadata.message_index ?? ""}`),
  );
  expect(lives.sort((a, b) => b.length - a.length)).toEqual([
    ["start ", "step 0", "step 1", "step 2", "end "],
    ["start ", "step 0", "end "],
  ]);
});

it("a child's checkpoints and its mark go with its result: a thread does not grow by what it delegated", async () => {
  const threadId = await newThread();
  await streamRun(threadId, asking(SCRIPT));
  const stub = env.THREADS.get(env.THREADS.idFromName(threadObjectName("alice", threadId)));
  await runInDurableObject(stub, (_instance, { storage }) => {
    const count = (table: string, where: string) =>
      storage.sql.exec<{ n: number }>(`SELECT count(*) AS n FROM ${table} ${where}`).one().n;
    expect(count("checkpoints", "WHERE checkpoint_ns = ''")).toBeGreaterThan(0);
    expect(count("checkpoints", "WHERE checkpoint_ns <> ''")).toBe(0);
    expect(count("delegations", "")).toBe(0);
  });
});
