/** What becomes of a thread: pruned, deleted, and what its runs used and said. */
import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import type { RunEventRow } from "../../../src/protocol/run-events.ts";
import type { Run } from "../../../src/protocol/runs.ts";
import type { ThreadStateBody } from "../../../src/protocol/threads.ts";
import type { TokenUsage } from "../../../src/protocol/token-usage.ts";
import { asking, BOB, newThread, send, sendJson } from "../../support/http.ts";

const BATCH_TABLES = [
  "batches",
  "batch_definitions",
  "batch_items",
  "batch_events",
  "batch_outputs",
  "batch_files",
  "leases",
  "live_batches",
];

const run = (threadId: string, script: string) => sendJson("POST", `/threads/${threadId}/runs/wait`, asking(script));
const stateOf = (threadId: string) => sendJson<ThreadStateBody>("GET", `/threads/${threadId}/state`);
const historyOf = (threadId: string) =>
  sendJson<ThreadStateBody[]>("POST", `/threads/${threadId}/history`, { limit: 1_000 });

it("pruning to the head keeps its messages whole, through runs, edits, forks and further prunings", async () => {
  const threadId = await newThread();
  for (let round = 0; round < 3; round += 1) {
    await run(threadId, `@ call ls {}\n@ say round ${round}`);
    const older = (await historyOf(threadId)).find((state) => state.next.length === 0)!;
    const fork = { values: { title: `fork ${round}` }, checkpoint_id: older.checkpoint!.checkpoint_id };
    await sendJson("POST", `/threads/${threadId}/state`, fork);
    const before = await stateOf(threadId);
    expect((before.values["messages"] as unknown[]).length).toBe((round + 1) * 4);
    const pruned = await sendJson("POST", "/threads/prune", { thread_ids: [threadId], strategy: "keep_latest" });
    expect(pruned).toEqual({ pruned_count: 1 });
    const after = await stateOf(threadId);
    expect(after.values).toEqual(before.values);
    expect((await historyOf(threadId)).map((state) => state.checkpoint)).toEqual([before.checkpoint]);
  }
});

it("prune counts what it pruned: not what is missing, foreign or named twice", async () => {
  const threadId = await newThread();
  const body = { thread_ids: [threadId, threadId, "never-made"], strategy: "delete" };
  const foreign = await send("POST", "/threads/prune", body, BOB);
  expect(await foreign.json()).toEqual({ pruned_count: 0 });
  expect((await send("GET", `/threads/${threadId}`)).status).toBe(200);
  expect(await sendJson("POST", "/threads/prune", body)).toEqual({ pruned_count: 1 });
  expect((await send("GET", `/threads/${threadId}`)).status).toBe(404);
  expect((await send("POST", "/threads/prune", { thread_ids: [threadId], strategy: "some" })).status).toBe(422);
});

it("a deleted thread leaves no row of its own in D1, its batches' included, and a second DELETE finds nothing", async () => {
  const threadId = await newThread();
  const kept = await newThread();
  const submitted: string[] = [];
  for (const id of [threadId, kept]) {
    await run(id, "@ say hello");
    const items = [
      { key: "a", prompt: "@ say a" },
      { key: "b", prompt: "@ say b" },
    ];
    const batch = { title: "Sums", subagent_type: "general-purpose", items };
    submitted.push((await sendJson<{ batch_id: string }>("POST", `/threads/${id}/batches`, batch)).batch_id);
  }
  const count = async (table: string, column: string, value: string) => {
    const found = await env.DB.prepare(`SELECT count(*) AS n FROM ${table} WHERE ${column} = ?`)
      .bind(value)
      .first<number>("n");
    return found ?? 0;
  };
  const [gone, stays] = [submitted[0]!, submitted[1]!];
  expect(await count("batch_items", "batch_id", gone)).toBe(2);
  expect((await send("DELETE", `/threads/${threadId}`)).status).toBe(204);
  for (const table of ["threads", "runs", "run_events", "batches", "batch_submissions"]) {
    expect(await count(table, "thread_id", threadId), table).toBe(0);
  }
  for (const table of BATCH_TABLES) expect(await count(table, "batch_id", gone), table).toBe(0);
  expect(await count("batch_items", "batch_id", stays)).toBe(2);
  expect((await send("DELETE", `/threads/${threadId}`)).status).toBe(404);
  expect((await send("DELETE", `/threads/${kept}`)).status).toBe(204);
});

it("token usage sums the runs by model and caller", async () => {
  const threadId = await newThread();
  const none = await sendJson<TokenUsage>("GET", `/threads/${threadId}/token-usage`);
  expect(none).toMatchObject({ thread_id: threadId, total_tokens: 0, total_runs: 0, by_model: {}, by_subagent: {} });
  await run(threadId, "@ say one");
  await run(threadId, "@ delegate general-purpose :: look :: <<'CHILD'\n@ say found\nCHILD\n@ say two");
  const runs = await sendJson<Run[]>("GET", `/threads/${threadId}/runs`);
  const entries = runs.flatMap(({ usage }) => usage ?? []);
  const tokens = (wanted: (caller: string) => boolean) =>
    entries
      .filter(({ caller }) => wanted(caller))
      .reduce(
        (sum, { reported, estimated }) => sum + (reported?.total_tokens ?? 0) + (estimated?.total_tokens ?? 0),
        0,
      );
  const used = await sendJson<TokenUsage>("GET", `/threads/${threadId}/token-usage?include_active=true`);
  expect(used.total_tokens).toBe(tokens(() => true));
  expect(used.total_input_tokens + used.total_output_tokens).toBe(used.total_tokens);
  expect(used).toMatchObject({
    total_runs: 2,
    by_model: { [entries[0]!.model_name ?? "unknown"]: { tokens: used.total_tokens, runs: 2 } },
    by_caller: { lead_agent: tokens((caller) => caller === "lead_agent"), middleware: 0 },
    by_subagent: { "general-purpose": tokens((caller) => caller === "subagent:general-purpose") },
  });
  expect(used.by_caller.subagent).toBeGreaterThan(0);
  expect((await send("GET", `/threads/${threadId}/token-usage`, undefined, BOB)).status).toBe(404);
});

it("the message pages lead back to the first message, and a run's own hold no other run's", async () => {
  const threadId = await newThread();
  await run(threadId, "@ delegate general-purpose :: look :: <<'CHILD'\n@ say found\nCHILD\n@ say one");
  await run(threadId, "@ say two");
  const whole = await sendJson<RunEventRow[]>("GET", `/threads/${threadId}/messages`);
  const seqs = whole.map(({ seq }) => seq);
  expect(whole.every(({ category }) => category === "message")).toBe(true);
  const back: number[] = [];
  let cursor = "";
  for (let pages = 0; pages < 20; pages += 1) {
    const path = `/threads/${threadId}/messages/page?limit=2${cursor}`;
    const page = await sendJson<{ data: RunEventRow[]; has_more: boolean; next_before_seq: number | null }>(
      "GET",
      path,
    );
    back.unshift(...page.data.map(({ seq }) => seq));
    expect(page.has_more).toBe(page.next_before_seq !== null);
    if (page.next_before_seq === null) break;
    cursor = `&before_seq=${page.next_before_seq}`;
  }
  expect(back).toEqual(seqs);
  const [second, first] = await sendJson<Run[]>("GET", `/threads/${threadId}/runs`);
  for (const { run_id } of [first!, second!]) {
    const own = whole.filter((row) => row.run_id === run_id).map(({ seq }) => seq);
    const path = `/threads/${threadId}/runs/${run_id}/messages`;
    const page = await sendJson<{ data: RunEventRow[]; has_more: boolean }>("GET", path);
    expect([page.data.map(({ seq }) => seq), page.has_more]).toEqual([own, false]);
    const oldest = await sendJson<{ data: RunEventRow[]; has_more: boolean }>("GET", `${path}?after_seq=0&limit=1`);
    expect([oldest.data.map(({ seq }) => seq), oldest.has_more]).toEqual([own.slice(0, 1), true]);
  }
  expect((await send("GET", `/threads/${threadId}/messages/page?after_seq=1`)).status).toBe(422);
  expect((await send("GET", `/threads/${threadId}/runs/nothing/messages`)).status).toBe(404);
});
