import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import type { Claim } from "../../../src/domain/batch/batch-repository.ts";
import { decideSettlement } from "../../../src/domain/batch/item-settlement.ts";
import { D1BatchRepository } from "../../../src/platform/d1/batch-repository.ts";
import { completed, failed, LEASE_MS, NOW, plan, storedItems, submission, sums, wake } from "../../support/batches.ts";

const repository = new D1BatchRepository(env.DB);

async function stored(over: Parameters<typeof submission>[0] = {}): Promise<string> {
  const submitted = await repository.submit(submission(over));
  if (!submitted.ok) throw new Error("refused");
  return submitted.value.batch.batchId;
}

function claim(batchId: string, over: Parameters<typeof wake>[1] = {}, now = NOW): Promise<Claim> {
  return repository.systemClaim({
    wake: wake(batchId, over),
    leaseToken: crypto.randomUUID(),
    now,
    leaseExpiresAt: now + LEASE_MS,
  });
}

async function claimed(...args: Parameters<typeof claim>): Promise<Extract<Claim, { kind: "claimed" }>> {
  const got = await claim(...args);
  if (got.kind !== "claimed") throw new Error(`not claimed: ${got.kind}`);
  return got;
}

const ordinals = (got: Claim): number[] => (got.kind === "claimed" ? got.items.map((item) => item.ordinal) : []);

describe("submit", () => {
  it("B9 R55: the same key and body return the same batch, another body is a conflict, another owner is free", async () => {
    const key = { submissionKey: crypto.randomUUID(), bodyHash: "a" };
    const first = await repository.submit(submission(key));
    const again = await repository.submit(submission(key));
    expect(first).toMatchObject({ ok: true, value: { created: true, batch: { status: "running", totalItems: 20 } } });
    expect(again).toMatchObject({ ok: true, value: { created: false } });
    expect(again.ok && first.ok && again.value.batch.batchId).toBe(first.ok && first.value.batch.batchId);
    const other = await repository.submit(submission({ ...key, bodyHash: "b" }));
    expect(other).toMatchObject({ ok: false, error: { reason: "idempotency_conflict" } });
    const bob = await repository.submit(submission({ ...key, owner: "bob", bodyHash: "b" }));
    expect(bob).toMatchObject({ ok: true, value: { created: true } });
  });

  it("stores what needs several statements: 60 prompts of 60,000 characters, in order, none cut", async () => {
    const items = Array.from({ length: 60 }, (_, place) => ({
      key: `k${place}`,
      prompt: `${place}:${"é".repeat(60_000)}`,
    }));
    const batchId = await stored({ plan: plan(0, { items, maxLiveItems: 60, maxRunningItems: 60 }) });
    const got = await claimed(batchId, { to: 60, slots: 60 });
    expect(got.items.map((item) => item.prompt.length)).toEqual(items.map((item) => item.prompt.length));
    expect(got.items[59]?.prompt.slice(0, 3)).toBe("59:");
  });

  it("keeps every character of a prompt and a result: quotes, NUL, emoji, backslashes", async () => {
    const odd = `"'\\ \u0000 after NUL \u{1f600} \u2028 \u0001`;
    const batchId = await stored({ plan: plan(0, { items: [{ key: odd.slice(0, 5), prompt: odd }] }) });
    const got = await claimed(batchId);
    expect(got.items[0]?.prompt).toBe(odd);
    await repository.systemSettle(got.lease, [completed(0, odd)], NOW);
    const page = await repository.exportPage("alice", batchId, { afterOrdinal: -1, limit: 10 });
    expect(page?.items[0]).toMatchObject({ result: odd, usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 } });
  });

  it("a load that died half-way is invisible, is replaced by the next submit of its key, and cannot go on", async () => {
    const draft = submission({ submissionKey: crypto.randomUUID() });
    await leaveLoading(draft.batchId, draft.submissionKey!);
    expect(await repository.getBatch("alice", draft.batchId)).toBeUndefined();
    expect(await claim(draft.batchId)).toEqual({ kind: "empty" });
    const again = await repository.submit({ ...draft, batchId: crypto.randomUUID() });
    expect(again).toMatchObject({ ok: true, value: { created: true, batch: { status: "running" } } });
    expect(await storedItems(env.DB, draft.batchId)).toEqual([]);
  });

  it("discarding never touches a batch that runs", async () => {
    const batchId = await stored();
    await repository.systemDiscardLoading(batchId);
    expect(await repository.getBatch("alice", batchId)).toMatchObject({ status: "running" });
    expect(await storedItems(env.DB, batchId)).toHaveLength(20);
  });

  it("snapshots files byte for byte, larger than a row as well", async () => {
    const big = new Uint8Array(2_500_000).map((_, place) => (place * 31) % 256);
    const files = [
      { path: "/workspace/big.bin", bytes: big },
      { path: "/workspace/empty.txt", bytes: new Uint8Array() },
    ];
    const batchId = await stored({ files });
    const loaded = await repository.systemLoadFiles(batchId);
    expect(loaded.map((file) => [file.path, file.bytes.byteLength])).toEqual([
      ["/workspace/big.bin", 2_500_000],
      ["/workspace/empty.txt", 0],
    ]);
    expect(loaded[0]?.bytes).toEqual(big);
  });
});

describe("claim", () => {
  it("B1: claimed items name the token of a lease row with an expiry", async () => {
    const batchId = await stored();
    const got = await claimed(batchId, { from: 0, to: 3, slots: 3 });
    expect(ordinals(got)).toEqual([0, 1, 2]);
    expect(got.batch).toEqual({
      subagentType: "bash",
      definition: { name: "bash" },
      submitterRole: "user",
      maxAttempts: 3,
      timeoutSeconds: 780,
    });
    const lease = await env.DB.prepare("SELECT * FROM leases WHERE batch_id = ?").bind(batchId).first();
    expect(lease).toMatchObject({ lease_token: got.lease.token, expires_at: NOW + LEASE_MS });
    const items = await storedItems(env.DB, batchId);
    expect(items.slice(0, 4).map((item) => item.lease_token)).toEqual([...Array(3).fill(got.lease.token), null]);
  });

  it("B7: two claims raced for the same range share it, and never lease more than max_running_items", async () => {
    const batchId = await stored({ plan: plan(20, { maxRunningItems: 6 }) });
    const both = await Promise.all([claim(batchId, { slots: 4 }), claim(batchId, { slots: 4 })]);
    expect(both.flatMap(ordinals).sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await claim(batchId, { from: 10, to: 20 })).toEqual({ kind: "empty" });
    expect(await sums(env.DB, batchId)).toMatchObject({ leased: 6, pending: 14 });
  });

  it("B6: a doubled wake claims nothing, at once or after the first one settled", async () => {
    const batchId = await stored();
    const grantId = crypto.randomUUID();
    const both = await Promise.all([claim(batchId, { grantId }), claim(batchId, { grantId })]);
    expect(both.map((got) => got.kind).sort()).toEqual(["claimed", "taken"]);
    const first = both.find((got) => got.kind === "claimed");
    if (first?.kind !== "claimed") throw new Error("nobody claimed");
    await repository.systemSettle(first.lease, [failed(0, 0)], NOW);
    expect(await claim(batchId, { grantId })).toEqual({ kind: "taken" });
  });

  it("B1: an expired wake, a foreign owner and a cancelled batch claim nothing", async () => {
    const batchId = await stored();
    expect(await claim(batchId, { expiresAt: NOW })).toEqual({ kind: "expired" });
    expect(await claim(batchId, { owner: "bob" })).toEqual({ kind: "empty" });
    await repository.cancel("alice", batchId, NOW);
    expect(await claim(batchId)).toEqual({ kind: "empty" });
  });

  it("B7: nothing past the window of max_live_items is claimable until items finish", async () => {
    const batchId = await stored({ plan: plan(20, { maxLiveItems: 4 }) });
    const got = await claimed(batchId, { to: 20, slots: 20 });
    expect(ordinals(got)).toEqual([0, 1, 2, 3]);
    expect(await claim(batchId, { to: 20 })).toEqual({ kind: "empty" });
    await repository.systemSettle(got.lease, [completed(0), completed(1)], NOW);
    expect(ordinals(await claim(batchId, { to: 20, slots: 20 }))).toEqual([4, 5]);
  });

  it("B6: once a range was inspected, a late wake under its old grant claims nothing", async () => {
    const batchId = await stored();
    const late = wake(batchId);
    await repository.systemInspect(batchId, [{ from: 0, to: 10, grantId: late.grantId }]);
    const got = await repository.systemClaim({ wake: late, leaseToken: "late", now: NOW, leaseExpiresAt: NOW + 1 });
    expect(got).toEqual({ kind: "taken" });
  });
});

describe("settle", () => {
  it("B2 B8: a stale write changes zero rows and is counted; the counters equal the sums", async () => {
    const batchId = await stored();
    const got = await claimed(batchId);
    const stale = await repository.systemSettle(
      { ...got.lease, token: "someone else" },
      [completed(0), failed(1, 0)],
      NOW,
    );
    expect(stale).toEqual({ applied: 0, stale: 2 });
    expect(await sums(env.DB, batchId)).toMatchObject({ leased: 10, completed: 0 });
    expect(await repository.systemSettle(got.lease, [completed(0), completed(1)], NOW)).toEqual({
      applied: 2,
      stale: 0,
    });
    expect(await repository.systemSettle(got.lease, [completed(0, "late"), completed(2)], NOW)).toEqual({
      applied: 1,
      stale: 1,
    });
    expect((await storedItems(env.DB, batchId))[0]).toMatchObject({ result: "r0", lease_token: null });
    const row = await env.DB.prepare("SELECT stale_writes FROM batches WHERE batch_id = ?").bind(batchId).first();
    expect(row).toEqual({ stale_writes: 3 });
    await expectCountersEqualSums(batchId);
  });

  it("B2: outputs and history of a stale write are refused with it", async () => {
    const batchId = await stored();
    const got = await claimed(batchId);
    const late = { ...completed(0), outputs: { "a.txt": "late" } };
    await repository.systemSettle({ ...got.lease, token: "someone else" }, [late], NOW);
    const left = await env.DB.prepare(
      `SELECT (SELECT count(*) FROM batch_outputs WHERE batch_id = ?1) AS outputs,
              (SELECT count(*) FROM batch_events WHERE batch_id = ?1) AS events`,
    )
      .bind(batchId)
      .first();
    expect(left).toEqual({ outputs: 0, events: 0 });
  });

  it("B3 R57 R58: failures spend attempts until none is left, deferrals never do", async () => {
    const batchId = await stored({ plan: plan(1, { maxAttempts: 2 }) });
    const settle = async (settlement: Parameters<typeof repository.systemSettle>[1][number]): Promise<void> => {
      const got = await claimed(batchId);
      expect(await repository.systemSettle(got.lease, [settlement], NOW)).toEqual({ applied: 1, stale: 0 });
    };
    const facts = { ordinal: 0, attempts: 0, maxAttempts: 2, resultCharsMax: 10 };
    await settle(decideSettlement(facts, { kind: "deferred", reason: "admission_timeout" })!);
    expect((await storedItems(env.DB, batchId))[0]).toMatchObject({ status: "pending", attempts: 0, deferrals: 1 });
    await settle(failed(0, 0, 2));
    expect((await storedItems(env.DB, batchId))[0]).toMatchObject({ status: "pending", attempts: 1, deferrals: 1 });
    await settle(failed(0, 1, 2));
    expect((await storedItems(env.DB, batchId))[0]).toMatchObject({ status: "failed", attempts: 2, error: "broke" });
    const events = await env.DB.prepare("SELECT attempt, kind FROM batch_events WHERE batch_id = ?")
      .bind(batchId)
      .all();
    expect(events.results).toEqual([
      { attempt: 1, kind: "failed" },
      { attempt: 2, kind: "failed" },
    ]);
    expect(await repository.getBatch("alice", batchId)).toMatchObject({ status: "completed", counts: { failed: 1 } });
  });

  it("B5: a terminal item never changes again, whoever writes", async () => {
    const batchId = await stored({ plan: plan(2) });
    const got = await claimed(batchId);
    await repository.systemSettle(got.lease, [completed(0), completed(1)], NOW);
    const before = await storedItems(env.DB, batchId);
    await repository.systemSettle(got.lease, [failed(0, 2), completed(1, "other")], NOW + 1);
    await repository.systemExpire(batchId, { from: 0, to: 10, grantId: got.lease.grantId }, NOW + LEASE_MS * 2);
    expect(await repository.cancel("alice", batchId, NOW + 2)).toMatchObject({ status: "completed" });
    expect(await storedItems(env.DB, batchId)).toEqual(before);
    await expectCountersEqualSums(batchId);
  });

  it("settles results that no single parameter can carry, and keeps outputs beside them", async () => {
    const batchId = await stored({ plan: plan(4) });
    const got = await claimed(batchId);
    const wide = "\u0001".repeat(500_000);
    const half = "x".repeat(700_000);
    const withOutputs = { ...completed(3), outputs: { "outputs/a.txt": "hello" } };
    const report = await repository.systemSettle(
      got.lease,
      [completed(0, wide), completed(1, half), completed(2, half), withOutputs],
      NOW,
    );
    expect(report).toEqual({ applied: 4, stale: 0 });
    const page = await repository.exportPage("alice", batchId, { afterOrdinal: -1, limit: 10 });
    expect(page?.items.map((item) => item.result?.length)).toEqual([500_000, 700_000, 700_000, 2]);
    expect(page?.items[3]?.outputs).toEqual({ "outputs/a.txt": "hello" });
    await expectCountersEqualSums(batchId);
  });
});

describe("heartbeat, cancel and sweep", () => {
  it("B1 B4: a heartbeat holds the lease, tells of a cancel, and is lost once the lease expired", async () => {
    const batchId = await stored();
    const { lease } = await claimed(batchId);
    expect(await repository.systemHeartbeat(lease, NOW + 200_000, NOW + 40_000)).toEqual({ kind: "held" });
    expect(await repository.systemHeartbeat({ ...lease, token: "x" }, NOW + 1, NOW)).toEqual({ kind: "lost" });
    await repository.cancel("alice", batchId, NOW);
    expect(await repository.systemHeartbeat(lease, NOW + 300_000, NOW + 80_000)).toEqual({ kind: "cancelled" });
    expect(await repository.systemHeartbeat(lease, NOW + 900_000, NOW + 300_000)).toEqual({ kind: "lost" });
  });

  it("B4 R59: when cancel returns every item is terminal and unleased, and a late write is fenced", async () => {
    const batchId = await stored();
    const got = await claimed(batchId);
    await repository.systemSettle(got.lease, [completed(0), failed(1, 0)], NOW);
    const cancelled = await repository.cancel("alice", batchId, NOW + 1);
    expect(cancelled).toMatchObject({
      status: "cancelled",
      counts: { pending: 0, leased: 0, completed: 1, failed: 0, cancelled: 19 },
    });
    expect((await storedItems(env.DB, batchId)).filter((item) => item.lease_token !== null)).toEqual([]);
    expect(await repository.systemSettle(got.lease, [completed(2)], NOW + 2)).toEqual({ applied: 0, stale: 1 });
    expect(await repository.cancel("alice", batchId, NOW + 3)).toEqual(
      cancelled === undefined
        ? null
        : {
            ...cancelled,
            updatedAt: NOW + 1,
          },
    );
    await expectCountersEqualSums(batchId);
  });

  it("B4 B8: a cancel raced with settles leaves counters equal to the sums", async () => {
    const batchId = await stored({ plan: plan(20, { maxRunningItems: 20 }) });
    const first = await claimed(batchId);
    const second = await claimed(batchId, { from: 10, to: 20 });
    await Promise.all([
      repository.systemSettle(
        first.lease,
        first.items.map((item) => completed(item.ordinal)),
        NOW,
      ),
      repository.cancel("alice", batchId, NOW),
      repository.systemSettle(
        second.lease,
        second.items.map((item) => failed(item.ordinal, 0)),
        NOW,
      ),
    ]);
    await expectCountersEqualSums(batchId);
    expect(await sums(env.DB, batchId)).toMatchObject({ pending: 0, leased: 0 });
  });

  it("B3 B6 R58: an expired lease spends an attempt and frees its items; a live one is left alone", async () => {
    const batchId = await stored({ plan: plan(20, { maxAttempts: 1 }) });
    const got = await claimed(batchId, { slots: 2 });
    const range = { from: 0, to: 10, grantId: got.lease.grantId };
    expect(await repository.systemExpire(batchId, range, NOW + LEASE_MS - 1)).toBe(0);
    const inspected = await repository.systemInspect(batchId, [range]);
    expect(inspected.ranges).toEqual([{ ...range, pending: 8, leased: 2, leaseExpiresAt: NOW + LEASE_MS }]);
    expect(await repository.systemExpire(batchId, range, NOW + LEASE_MS)).toBe(2);
    const items = await storedItems(env.DB, batchId);
    expect(items[0]).toMatchObject({ status: "failed", attempts: 1, lease_token: null });
    expect(items[0]?.error).toMatch(/^lease_expired/);
    expect(await repository.systemSettle(got.lease, [completed(0)], NOW)).toEqual({ applied: 0, stale: 1 });
    await expectCountersEqualSums(batchId);
  });

  it("the cron's list holds what has not moved and forgets what its thread acknowledged", async () => {
    const batchId = await stored({ now: 1_000 });
    const listed = async (before: number): Promise<boolean> =>
      (await repository.systemListStale(before, "", 1_000)).some((live) => live.batchId === batchId);
    expect(await listed(1_000)).toBe(false);
    expect(await listed(1_001)).toBe(true);
    await repository.systemForget(batchId);
    expect(await listed(1_001)).toBe(false);
  });
});

describe("reads", () => {
  it("P7: a foreign batch answers exactly like a missing one, on every read", async () => {
    const batchId = await stored();
    const page = { afterOrdinal: -1, limit: 10 };
    const answers = async (owner: string, id: string): Promise<unknown[]> => [
      await repository.getBatch(owner, id),
      await repository.listItems(owner, id, { ...page, previewChars: 10 }),
      await repository.exportPage(owner, id, page),
      await repository.cancel(owner, id, NOW),
    ];
    expect(await answers("bob", batchId)).toEqual(await answers("bob", "no-such-batch"));
    expect(await repository.getBatch("alice", batchId)).toMatchObject({ status: "running" });
  });

  it("lists by status and cursor with bounded previews, and exports terminal items in pages", async () => {
    const batchId = await stored();
    const got = await claimed(batchId);
    await repository.systemSettle(got.lease, [completed(1, "é".repeat(50)), completed(2), completed(5)], NOW);
    const listed = await repository.listItems("alice", batchId, {
      status: "completed",
      afterOrdinal: 1,
      limit: 1,
      previewChars: 3,
    });
    expect(listed).toMatchObject([{ ordinal: 2, key: "k2", preview: "r2", attempts: 0 }]);
    const first = await repository.exportPage("alice", batchId, { afterOrdinal: -1, limit: 2 });
    expect(first?.items.map((item) => item.ordinal)).toEqual([1, 2]);
    const rest = await repository.exportPage("alice", batchId, { afterOrdinal: first?.nextAfter ?? 99, limit: 2 });
    expect(rest).toMatchObject({ items: [{ ordinal: 5, status: "completed" }], nextAfter: null });
  });

  it("P8: an export page ends at its byte bound and the next one goes on", async () => {
    const batchId = await stored({ plan: plan(8) });
    const got = await claimed(batchId);
    const wide = got.items.map((item) => completed(item.ordinal, "x".repeat(1_500_000)));
    await repository.systemSettle(got.lease, wide, NOW);
    const seen: number[] = [];
    let after: number | null = -1;
    let pages = 0;
    while (after !== null && pages < 8) {
      const page = await repository.exportPage("alice", batchId, { afterOrdinal: after, limit: 100 });
      seen.push(...(page?.items.map((item) => item.ordinal) ?? []));
      after = page?.nextAfter ?? null;
      pages += 1;
    }
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(pages).toBe(3);
  });
});

/** What a crash between the statements of a load leaves behind. */
async function leaveLoading(batchId: string, submissionKey: string): Promise<void> {
  await env.DB.batch([
    env.DB.prepare(
      `INSERT INTO batches VALUES (?1, 'alice', 't1', ?2, 'loading', 'T', 'bash', 20, 0, 0, 0, 0, 0, 0, 100, 10, 3, 780,
       0, ?3, ?3)`,
    ).bind(batchId, submissionKey, NOW),
    env.DB.prepare("INSERT INTO batch_submissions VALUES ('alice', 't1', ?1, ?2, 'hash')").bind(submissionKey, batchId),
    env.DB.prepare("INSERT INTO live_batches VALUES (?1, 'alice', 't1', ?2)").bind(batchId, NOW),
    env.DB.prepare("INSERT INTO batch_definitions (batch_id, definition) VALUES (?1, '{}')").bind(batchId),
    env.DB.prepare("INSERT INTO batch_items VALUES (?1, 0, 'pending', 0, 0, NULL, NULL, NULL, 'k0', NULL, 'p')").bind(
      batchId,
    ),
  ]);
}

async function expectCountersEqualSums(batchId: string): Promise<void> {
  const batch = await repository.getBatch("alice", batchId);
  expect(batch?.counts).toEqual(await sums(env.DB, batchId));
}
