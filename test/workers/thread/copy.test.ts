/** Copies of threads: whole, of one moment, and nobody's else. */
import { env, evictDurableObject, runDurableObjectAlarm, runInDurableObject, SELF } from "cloudflare:test";
import { interrupt } from "@langchain/langgraph";
import { expect, it } from "vitest";
import { COPY_IDLE_MS } from "../../../src/durable-objects/thread-copies.ts";
import { ThreadFiles } from "../../../src/durable-objects/thread-files.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { COPY_TRIES_MAX } from "../../../src/gateway/thread-copy.ts";
import { COPY_PAGE_BYTES_MAX } from "../../../src/platform/durable-storage/thread-copy-rows.ts";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import type { CopyCursor, CopyPage } from "../../../src/protocol/thread-copy.ts";
import type { ThreadRpc } from "../../../src/protocol/thread-rpc.ts";
import { createRunBodySchema, type Run } from "../../../src/protocol/runs.ts";
import type { Thread, ThreadStateBody } from "../../../src/protocol/threads.ts";
import { err, ok } from "../../../src/domain/shared/result.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ask, failure, gatewayDeps } from "../../support/gateway.ts";
import { ALICE, asking, BOB, newThread, send, sendJson } from "../../support/http.ts";
import { startRun, tomorrow, withWakes } from "../../support/thread-wakes.ts";

const wait = (threadId: string, script: string, options = {}) =>
  sendJson("POST", `/threads/${threadId}/runs/wait`, asking(script, options));
const historyOf = (threadId: string) =>
  sendJson<ThreadStateBody[]>("POST", `/threads/${threadId}/history`, { limit: 1_000 });
const copyOf = (threadId: string) => sendJson<Thread>("POST", `/threads/${threadId}/copy`);
const objectOf = (threadId: string) => env.THREADS.get(env.THREADS.idFromName(threadObjectName("alice", threadId)));
const rpcOf = (threadId: string) => objectOf(threadId) as unknown as ThreadRpc;

/** All that a history tells, but for the thread's own id. */
async function contentOf(threadId: string): Promise<unknown> {
  return JSON.parse(JSON.stringify(await historyOf(threadId)).replaceAll(threadId, "THREAD"));
}

it("has every checkpoint with its messages, the files and the metadata, and goes on by itself", async () => {
  const { thread_id: threadId } = await sendJson<Thread>("POST", "/threads", { metadata: { topic: "tides" } });
  await wait(threadId, '@ call write_file {"path": "a.txt", "content": "one"}\n@ say first');
  await wait(threadId, "@ delegate general-purpose :: look :: <<'C'\n@ say seen\nC\n@ say second");
  const [, older] = (await historyOf(threadId)).filter((state) => state.next.length === 0);
  await wait(threadId, "@ say a branch", { checkpoint_id: older!.checkpoint!.checkpoint_id });
  const before = await contentOf(threadId);

  const copy = await copyOf(threadId);

  expect(copy).toMatchObject({ metadata: { topic: "tides" }, status: "idle" });
  expect(copy.thread_id).not.toBe(threadId);
  expect(await contentOf(copy.thread_id)).toEqual(before);
  expect(await contentOf(threadId)).toEqual(before);
  const file = await send("GET", `/threads/${copy.thread_id}/files/a.txt`);
  expect(await file.text()).toBe("one");
  expect(await sendJson<Run[]>("GET", `/threads/${copy.thread_id}/runs`)).toEqual([]);
  const found = await sendJson<Thread[]>("POST", "/threads/search", { ids: [copy.thread_id] });
  expect(found).toMatchObject([{ thread_id: copy.thread_id, metadata: { topic: "tides" } }]);

  await wait(copy.thread_id, '@ call write_file {"path": "a.txt", "content": "two"}\n@ say on the copy');
  expect(await contentOf(threadId)).toEqual(before);
  expect(await (await send("GET", `/threads/${threadId}/files/a.txt`)).text()).toBe("one");
  const [head] = await historyOf(copy.thread_id);
  const messages = head!.values["messages"] as { content: string }[];
  expect(messages.at(-1)!.content).toBe("on the copy");
  expect(messages.length).toBe((older!.values["messages"] as unknown[]).length + 6);
});

it("of more than a page is the same to the byte", async () => {
  const threadId = await newThread();
  const big = new Uint8Array(COPY_PAGE_BYTES_MAX * 2 + 1_234);
  for (let at = 0; at < big.length; at += 1) big[at] = (at * 31) % 251;
  const put = await SELF.fetch(`https://deputy.test/threads/${threadId}/files/big.bin`, {
    method: "PUT",
    headers: ALICE,
    body: big,
  });
  expect(put.status).toBe(201);
  const { thread_id: copied } = await copyOf(threadId);
  const read = await send("GET", `/threads/${copied}/files/big.bin`);
  expect(Buffer.from(await read.arrayBuffer()).equals(Buffer.from(big))).toBe(true);
});

it("is refused while a run is active, and of a foreign thread as of a missing one", async () => {
  const threadId = await newThread();
  const { run_id: runId } = await sendJson<Run>("POST", `/threads/${threadId}/runs`, asking("@ fail stall"));
  expect(await failure(await send("POST", `/threads/${threadId}/copy`))).toEqual([409, "thread_busy"]);
  expect((await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1`)).status).toBe(204);
  const foreign = await send("POST", `/threads/${threadId}/copy`, undefined, BOB);
  const missing = await send("POST", "/threads/never-made/copy", undefined, BOB);
  expect([foreign.status, missing.status]).toEqual([404, 404]);
  const told = await foreign.json<{ message: string }>();
  expect(told.message).toBe((await missing.json<{ message: string }>()).message.replace("never-made", threadId));
  expect((await send("POST", `/threads/${threadId}/copy`)).status).toBe(200);
});

it("begins again when its source changed, and gives up as busy after some tries", async () => {
  const page = { kind: "page", v: 1, stamp: "1", schema: 1, tables: [], next: { table: 0, after: ["", "x"] } } as const;
  const threads = new FakeThreads({
    copyPage: async (_address, { stamp }) => (stamp === undefined ? ok(page) : ok({ kind: "changed" })),
    receiveCopy: async () => ok({ kind: "stored" }),
  });
  const refused = await ask(gatewayDeps({ threads }), "/threads/t/copy", { method: "POST" });
  expect(await failure(refused)).toEqual([409, "thread_busy"]);
  const first = threads.calls.filter(({ method, args }) => method === "receiveCopy" && args.length > 0);
  expect(first.map(({ args }) => (args[1] as { index: number }).index)).toEqual(Array(COPY_TRIES_MAX).fill(0));
  expect(new Set(first.map(({ threadId }) => threadId)).size).toBe(1);
  const large = new FakeThreads({ copyPage: async () => err({ code: "too_large", message: "too large" }) });
  expect(await failure(await ask(gatewayDeps({ threads: large }), "/threads/t/copy", { method: "POST" }))).toEqual([
    413,
    "too_large",
  ]);
});

async function pagesOf(runtime: ThreadRuntime): Promise<CopyPage[]> {
  const pages: CopyPage[] = [];
  let cursor: CopyCursor | undefined;
  let stamp: string | undefined;
  for (;;) {
    const page = await runtime.copies.page({ ...(cursor && { cursor }), ...(stamp && { stamp }) });
    if (!page.ok || page.value.kind !== "page") throw new Error(JSON.stringify(page));
    pages.push(structuredClone(page.value));
    ({ stamp, next: cursor } = page.value);
    if (cursor === undefined) return pages;
  }
}

it("a run, an edit, a file or a pruning between two pages is noticed; a look is not", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create();
    const { runId } = await startRun(runtime, "@ say one");
    await runtime.context.live.get(runId)!.done;
    const stampOf = async () => (await pagesOf(runtime))[0]!.stamp;
    const changed = async (change: () => Promise<unknown>) => {
      const stamp = await stampOf();
      expect(await runtime.copies.page({ cursor: { table: 1, after: [] }, stamp })).toMatchObject({
        value: { kind: "page" },
      });
      await change();
      return (await runtime.copies.page({ cursor: { table: 1, after: [] }, stamp })).ok
        ? (await stampOf()) !== stamp
        : "busy";
    };
    expect(await changed(() => runtime.state.get({}))).toBe(false);
    expect(await changed(() => runtime.state.update({ values: { title: "x" } }))).toBe(true);
    expect(await changed(() => runtime.state.patchMetadata({ tag: "x" }))).toBe(true);
    expect(
      await changed(async () => new ThreadFiles(runtime.context.workspace).put("a.txt", new Uint8Array([1]))),
    ).toBe(true);
    expect(await changed(() => runtime.pruneToHead())).toBe(true);
    const stamp = await stampOf();
    const again = await thread.wake();
    expect(await again.copies.page({ cursor: { table: 1, after: [] }, stamp })).toEqual({
      ok: true,
      value: { kind: "changed" },
    });
  });
});

it("a question that waits in the source is answered in the copy", async () => {
  const colour = plainTool("colour", () => succeeded(`told ${String(interrupt("which colour?"))}`));
  const child =
    "@ delegate general-purpose :: ask :: <<'CHILD'\n@ call colour {}\n@ say child was {{result:1}}\nCHILD\n@ say lead got {{result:1}}";
  let pages: CopyPage[] = [];
  await withWakes(async (thread) => {
    const runtime = await thread.create({ tools: [colour] });
    const { runId } = await startRun(runtime, child);
    await runtime.context.live.get(runId)!.done;
    expect(runtime.context.runs.find(runId)!.status).toBe("interrupted");
    pages = await pagesOf(runtime);
  });
  await withWakes(async (thread) => {
    const target = thread.sleeping({ tools: [colour] });
    const address = { v: 1, owner: "alice", thread_id: thread.threadId, role: "user" } as const;
    for (const [index, page] of pages.entries()) {
      expect(target.threads.exists()).toBe(false);
      expect(await target.copies.receive(address, { copy_id: "c", index, page }, async () => undefined)).toMatchObject({
        ok: true,
      });
    }
    const runtime = await thread.wake({ tools: [colour] });
    const view = await runtime.threads.get();
    expect(JSON.stringify(view.ok && view.value.interrupts)).toContain("which colour?");
    const body = createRunBodySchema.parse({ assistant_id: "lead_agent", command: { resume: "blue" } });
    const answered = await runtime.runs.create({ graph_id: "lead_agent", body });
    if (!answered.ok) throw new Error(answered.error.message);
    await runtime.context.live.get(answered.value.runId)?.done;
    expect(runtime.context.runs.find(answered.value.runId)!.status).toBe("success");
    expect(await runtime.context.graphs.renderState(undefined)).toContain('Result: child was told blue"');
  });
});

it("one that nobody ends is no thread, and goes: at its alarm, or before a thread is made there", async () => {
  const threadId = await newThread();
  await wait(threadId, '@ call write_file {"path": "a.txt", "content": "one"}\n@ say first');
  const source = { v: 1, owner: "alice", thread_id: threadId, role: "user" } as const;
  const read = await rpcOf(threadId).copyPage(source, {});
  if (!read.ok || read.value.kind !== "page") throw new Error(JSON.stringify(read));
  const { metadata: _none, ...unended } = read.value;
  const page = { ...unended, next: { table: 7, after: [] } } as CopyPage;
  const begin = async (id: string) => {
    const address = { ...source, thread_id: id };
    expect(await rpcOf(id).receiveCopy(address, { copy_id: "c", index: 0, page })).toEqual({
      ok: true,
      value: { kind: "stored" },
    });
    expect((await send("GET", `/threads/${id}`)).status).toBe(404);
    expect((await send("GET", `/threads/${id}/state`)).status).toBe(404);
  };
  const tablesOf = (id: string) =>
    runInDurableObject(objectOf(id), (_object, { storage }) =>
      storage.sql
        .exec<{ name: string }>(
          "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
        )
        .toArray(),
    );

  const taken = crypto.randomUUID();
  await begin(taken);
  await sendJson("POST", "/threads", { thread_id: taken });
  expect(await historyOf(taken)).toEqual([]);
  expect((await send("GET", `/threads/${taken}/files/a.txt`)).status).toBe(404);
  // Its copy has ended with that.
  const late = await rpcOf(taken).receiveCopy({ ...source, thread_id: taken }, { copy_id: "c", index: 1, page });
  expect(late).toEqual({ ok: true, value: { kind: "changed" } });
  expect(await historyOf(taken)).toEqual([]);

  const left = crypto.randomUUID();
  await begin(left);
  const due = await runInDurableObject(objectOf(left), (_object, { storage }) => storage.getAlarm());
  expect(due! - Date.now()).toBeGreaterThan(COPY_IDLE_MS / 2);
  // While its pages may still come it stays, and the alarm is set again.
  await runDurableObjectAlarm(objectOf(left));
  expect((await tablesOf(left)).length).toBeGreaterThan(0);
  expect(await runInDurableObject(objectOf(left), (_object, { storage }) => storage.getAlarm())).not.toBeNull();
  // The instance that received the page is gone: nobody knows of the copy any more.
  await evictDurableObject(objectOf(left));
  expect(await runDurableObjectAlarm(objectOf(left))).toBe(true);
  expect(await tablesOf(left)).toEqual([]);
  expect((await send("GET", `/threads/${left}`)).status).toBe(404);
});

it("a page out of its order, or of another schema, is not stored", async () => {
  let pages: CopyPage[] = [];
  await withWakes(async (thread) => {
    const runtime = await thread.create();
    pages = await pagesOf(runtime);
  });
  await withWakes(async (thread) => {
    const target = thread.sleeping({ now: tomorrow });
    const address = { v: 1, owner: "alice", thread_id: thread.threadId, role: "user" } as const;
    const receive = (index: number, page: CopyPage, copyId = "c") =>
      target.copies.receive(address, { copy_id: copyId, index, page }, async () => undefined);
    const changed = { ok: true, value: { kind: "changed" } };
    expect(await receive(1, pages[0]!)).toEqual(changed);
    expect(await receive(0, { ...pages[0]!, schema: 1 })).toEqual(changed);
    const { metadata: _none, ...unended } = pages[0]!;
    const first = { ...unended, next: { table: 7, after: [] } } as CopyPage;
    expect(await receive(0, first)).toEqual({ ok: true, value: { kind: "stored" } });
    expect(await receive(2, pages[0]!)).toEqual(changed);
    expect(await receive(1, pages[0]!, "another")).toEqual(changed);
    expect(target.threads.exists()).toBe(false);
    expect(await receive(1, pages[0]!)).toEqual({ ok: true, value: { kind: "stored" } });
    expect(target.threads.exists()).toBe(true);
    expect(await receive(0, pages[0]!)).toMatchObject({ ok: false, error: { code: "already_exists" } });
  });
});

it("P3: what a copy writes to D1 stands behind its own object's epoch: past the fence of a thread deleted there, refused behind a later one", async () => {
  const sourceId = await newThread();
  await wait(sourceId, "@ say first");
  const source = { v: 1, owner: "alice", thread_id: sourceId, role: "user" } as const;
  const read = await rpcOf(sourceId).copyPage(source, {});
  if (!read.ok || read.value.kind !== "page") throw new Error(JSON.stringify(read));
  const page = read.value;
  const row = (threadId: string) =>
    env.DB.prepare("SELECT epoch FROM threads WHERE thread_id = ?1").bind(threadId).first<{ epoch: number }>();

  const deleted = await newThread();
  await send("DELETE", `/threads/${deleted}`);
  expect(await row(deleted)).toBeNull();
  const address = { ...source, thread_id: deleted };
  const stored = await rpcOf(deleted).receiveCopy(address, { copy_id: "c", index: 0, page });
  expect(stored).toMatchObject({ ok: true, value: { kind: "stored", thread: { thread_id: deleted } } });
  const fence = await env.DB.prepare("SELECT epoch FROM thread_fences WHERE thread_id = ?1")
    .bind(deleted)
    .first("epoch");
  expect((await row(deleted))!.epoch).toBeGreaterThanOrEqual(Number(fence));

  // The instance that took the last page is late: a later one has the thread, and has written.
  await withWakes(async (thread) => {
    const late = thread.sleeping({ now: tomorrow });
    const target = { ...source, thread_id: thread.threadId };
    await late.copies.receive(target, { copy_id: "c", index: 0, page }, async () => undefined);
    late.context.wake.take();
    const newer = await thread.wake();
    await newer.threads.patch({ told: "by the newer one" });
    const before = await row(thread.threadId);
    late.context.outbox.append([], { now: 0, threadChanged: true });
    await expect(late.context.flush.flush()).rejects.toThrow("was replaced");
    expect(await row(thread.threadId)).toEqual(before);
  });
});
