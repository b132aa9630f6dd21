import { env } from "cloudflare:test";
import { expect, it } from "vitest";
import { ok } from "../../../src/domain/shared/result.ts";
import type { BatchReader } from "../../../src/domain/batch/batch-repository.ts";
import { PROGRESS_POLL_MS, PROGRESS_POLLS_MAX } from "../../../src/gateway/bounds.ts";
import { HEARTBEAT_MS } from "../../../src/protocol/heartbeat.ts";
import { BatchReads } from "../../../src/platform/d1/batch-reads.ts";
import { D1BatchRepository } from "../../../src/platform/d1/batch-repository.ts";
import { toBatch } from "../../../src/protocol/batch-views.ts";
import {
  batchItemSchema,
  batchProgressSchema,
  batchResultLineSchema,
  batchSchema,
} from "../../../src/protocol/batches.ts";
import { completed, failed, LEASE_MS, NOW, plan, submission, wake } from "../../support/batches.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ask, failure, gatewayDeps, type Failure } from "../../support/gateway.ts";

const repository = new D1BatchRepository(env.DB);

async function stored(items = 4): Promise<string> {
  const submitted = await repository.submit(submission({ threadId: "t", plan: plan(items, { maxRunningItems: 64 }) }));
  if (!submitted.ok) throw new Error("refused");
  return submitted.value.batch.batchId;
}

async function settle(batchId: string, from: number, to: number): Promise<void> {
  const claim = await repository.systemClaim({
    wake: wake(batchId, { from, to, slots: 64 }),
    leaseToken: crypto.randomUUID(),
    now: NOW,
    leaseExpiresAt: NOW + LEASE_MS,
  });
  if (claim.kind !== "claimed") throw new Error(claim.kind);
  const settlements = claim.items.map(({ ordinal }) => (ordinal === 1 ? failed(1, 2) : completed(ordinal)));
  await repository.systemSettle(claim.lease, settlements, NOW + 1);
}

/** `text()` warns about a media type it does not know. */
const textOf = async (answer: Response) => new TextDecoder().decode(await answer.arrayBuffer());

const BODY = { title: "Sums", subagent_type: "bash", items: [{ key: "a", prompt: "1+1" }] };

it("B9: a new submission is 201, a repeated one 200; the key reaches the object, a bad one does not", async () => {
  const id = await stored();
  const view = await repository.getBatch("alice", id);
  if (view === undefined) throw new Error("missing");
  const keys: (string | null)[] = [];
  const threads = new FakeThreads({
    createBatch: async (_address, _body, key) => {
      keys.push(key);
      return ok({ batch: toBatch(view), created: keys.length === 1 });
    },
  });
  const post = (headers: Record<string, string>) =>
    ask(gatewayDeps({ threads }), "/threads/t/batches", { method: "POST", json: BODY, headers });
  const first = await post({ "idempotency-key": "k-1" });
  expect([first.status, batchSchema.safeParse(await first.json()).success]).toEqual([201, true]);
  expect((await post({ "idempotency-key": "k-1" })).status).toBe(200);
  expect((await post({})).status).toBe(200);
  for (const bad of ["", "a b", "x".repeat(256)]) {
    expect(await failure(await post({ "idempotency-key": bad }))).toEqual([422, "invalid_request"]);
  }
  expect(keys).toEqual(["k-1", "k-1", null]);
});

it("names the item that breaks a limit, and asks no object", async () => {
  const threads = new FakeThreads();
  const items = [
    { key: "ok", prompt: "p" },
    { key: "k".repeat(129), prompt: "p" },
  ];
  const answer = await ask(gatewayDeps({ threads }), "/threads/t/batches", {
    method: "POST",
    json: { ...BODY, items },
  });
  const body = await answer.json<Failure>();
  expect([answer.status, body.message]).toEqual([422, expect.stringMatching(/^body\.items\.1\.key: .*128/)]);
  expect(threads.calls).toEqual([]);
});

it("R55 P7: batch, items and export are the owner's; to another they are missing", async () => {
  const id = await stored();
  await settle(id, 0, 3);
  const get = (path: string, key = "key-alice") => ask(gatewayDeps(), `/batches/${id}${path}`, { key });
  const batch = await (await get("")).json();
  expect(batchSchema.parse(batch)).toMatchObject({
    status: "running",
    total_items: 4,
    counts: { pending: 1, completed: 2, failed: 1 },
  });
  const items = await (await get("/items?after_ordinal=0&limit=2")).json<unknown[]>();
  expect(items.map((item) => batchItemSchema.parse(item))).toMatchObject([
    { ordinal: 1, status: "failed", error: "broke" },
    { ordinal: 2, status: "completed", preview: "r2" },
  ]);
  expect(await (await get("/items?status=pending")).json()).toMatchObject([{ ordinal: 3 }]);
  expect(
    await ask(gatewayDeps({ previewChars: 1 }), `/batches/${id}/items?limit=1`).then((one) => one.json()),
  ).toMatchObject([{ preview: "r" }]);
  const exported = await get("/results.jsonl");
  expect(exported.headers.get("content-type")).toBe("application/jsonl");
  const lines = new TextDecoder()
    .decode(await exported.arrayBuffer())
    .trimEnd()
    .split("\n")
    .map((line) => batchResultLineSchema.parse(JSON.parse(line)));
  expect(lines).toMatchObject([
    { key: "k0", status: "completed", result: "r0", usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 } },
    { key: "k1", status: "failed", result: null, error: "broke" },
    { key: "k2", status: "completed" },
  ]);
  for (const path of ["", "/items", "/results.jsonl", "/events"]) {
    expect(await failure(await get(path, "key-bob"))).toEqual([404, "not_found"]);
  }
});

it("R55: an export of several pages is whole, in order, and read only as fast as the client reads", async () => {
  const id = await stored(450);
  for (let from = 0; from < 450; from += 50) await settle(id, from, from + 50);
  let pages = 0;
  const reads = new BatchReads(env.DB);
  const counting: BatchReader = {
    getBatch: (...args) => reads.getBatch(...args),
    listItems: (...args) => reads.listItems(...args),
    exportPage: (...args) => {
      pages++;
      return reads.exportPage(...args);
    },
  };
  const answer = await ask(gatewayDeps({ batches: counting }), `/batches/${id}/results.jsonl`);
  expect(pages).toBe(0);
  const lines = (await textOf(answer))
    .trimEnd()
    .split("\n")
    .map((line) => batchResultLineSchema.parse(JSON.parse(line)).key);
  expect(lines).toEqual(Array.from({ length: 450 }, (_, index) => `k${index}`));
  expect(pages).toBeGreaterThan(2);
});

it("an export of a batch without ended items is empty, not an error", async () => {
  const answer = await ask(gatewayDeps(), `/batches/${await stored()}/results.jsonl`);
  expect([answer.status, (await answer.arrayBuffer()).byteLength]).toEqual([200, 0]);
});

it("cancel goes to the batch's own thread and answers the batch", async () => {
  const id = await stored();
  const threads = new FakeThreads({
    cancelBatch: async (address, batchId) => {
      const cancelled = await repository.cancel(address.owner, batchId, NOW + 1);
      if (cancelled === undefined) throw new Error("missing");
      return ok(toBatch(cancelled));
    },
  });
  const answer = await ask(gatewayDeps({ threads }), `/batches/${id}/cancel`, { method: "POST" });
  expect(await answer.json()).toMatchObject({ batch_id: id, status: "cancelled", counts: { cancelled: 4 } });
  expect(threads.calls).toMatchObject([{ owner: "alice", threadId: "t", method: "cancelBatch" }]);
  const foreign = await ask(gatewayDeps({ threads }), `/batches/${id}/cancel`, { method: "POST", key: "key-bob" });
  expect(await failure(foreign)).toEqual([404, "not_found"]);
  expect(threads.calls.length).toBe(1);
});

/** `data:` of each progress frame, and how often each other line came. */
async function progressOf(answer: Response) {
  const blocks = (await answer.text()).split("\n\n").filter((block) => block !== "");
  const frames = blocks.filter((block) => block.startsWith("event: progress\ndata: "));
  const counts = frames.map((frame) =>
    batchProgressSchema.parse(JSON.parse(frame.slice("event: progress\ndata: ".length))),
  );
  return { counts, heartbeats: blocks.filter((block) => block === ": heartbeat").length, blocks: blocks.length };
}

it("progress comes at each change and ends with the batch", async () => {
  const id = await stored();
  let pauses = 0;
  const pause = async () => {
    pauses++;
    if (pauses === 2) await settle(id, 0, 2);
    if (pauses === 4) await settle(id, 2, 4);
  };
  const answer = await ask(gatewayDeps({ pause }), `/batches/${id}/events`);
  expect(answer.headers.get("content-type")).toBe("text/event-stream");
  const { counts, blocks } = await progressOf(answer);
  expect(counts.map((one) => [one.status, one.counts.completed, one.counts.failed, one.counts.pending])).toEqual([
    ["running", 0, 0, 4],
    ["running", 1, 1, 2],
    ["completed", 3, 1, 0],
  ]);
  expect([blocks, pauses]).toEqual([3, 4]);
});

it("P8: a batch that stands still costs one read a second, a comment at each heartbeat, and ends at the bound", async () => {
  const id = await stored();
  const pauses: number[] = [];
  const pause = async (ms: number) => {
    pauses.push(ms);
  };
  const { counts, heartbeats } = await progressOf(await ask(gatewayDeps({ pause }), `/batches/${id}/events`));
  expect(counts.length).toBe(1);
  expect(pauses).toEqual(Array.from({ length: PROGRESS_POLLS_MAX - 1 }, () => PROGRESS_POLL_MS));
  expect(heartbeats).toBe(Math.floor(((PROGRESS_POLLS_MAX - 1) * PROGRESS_POLL_MS) / HEARTBEAT_MS));
});

it("a viewer that leaves ends the polling", async () => {
  const id = await stored();
  let pauses = 0;
  let left = (): void => {};
  const gone = new Promise<void>((resolve) => (left = resolve));
  const pause = async () => {
    pauses++;
    if (pauses === 2) await gone;
  };
  const answer = await ask(gatewayDeps({ pause }), `/batches/${id}/events`);
  const reader = answer.body?.getReader();
  await reader?.read();
  const waiting = reader?.read();
  await reader?.cancel();
  left();
  await waiting;
  expect(pauses).toBeLessThanOrEqual(3);
});
