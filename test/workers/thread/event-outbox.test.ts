import { env, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { EVENT_CONTENT_CHARS_MAX, EventOutbox } from "../../../src/platform/durable-storage/event-outbox.ts";
import { ensureSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import type { RunEventDraft } from "../../../src/protocol/run-events.ts";

let objects = 0;

async function withOutbox(act: (outbox: EventOutbox, storage: DurableObjectStorage) => void): Promise<void> {
  const stub = env.THREADS.get(env.THREADS.idFromName(`outbox-${objects++}`));
  await runInDurableObject(stub, (_instance, state) => {
    ensureSchema(state.storage);
    act(new EventOutbox(state.storage.sql), state.storage);
  });
}

function draft(content: unknown): RunEventDraft {
  return { run_id: "run", event_type: "llm.ai.response", category: "message", content, metadata: {} };
}

function drain(outbox: EventOutbox): number[] {
  const seen: number[] = [];
  for (let pending = outbox.pending(); pending !== undefined; pending = outbox.pending()) {
    seen.push(...pending.events.map((event) => event.seq));
    outbox.settle(pending);
  }
  return seen;
}

it("numbers events without gaps across flushes (P1)", async () => {
  await withOutbox((outbox) => {
    outbox.append([draft("a"), draft("b")], { now: 0 });
    expect(drain(outbox)).toEqual([1, 2]);
    outbox.append([draft("c")], { now: 0 });
    outbox.append([draft("d")], { now: 0 });
    expect(drain(outbox)).toEqual([3, 4]);
    expect(outbox.lastSeq()).toBe(4);
    expect(outbox.pending()).toBeUndefined();
  });
});

it("keeps an event that was appended while a flush was on its way", async () => {
  await withOutbox((outbox) => {
    outbox.append([draft("a")], { now: 0 });
    const onItsWay = outbox.pending()!;
    outbox.append([draft("b")], { now: 0, threadChanged: true });
    outbox.settle(onItsWay);
    const left = outbox.pending()!;
    expect(left.events.map((event) => event.seq)).toEqual([2]);
    expect(left.threadChanges).toBe(1);
  });
});

it("gives the same events again when a flush was not settled, as after a crash", async () => {
  await withOutbox((outbox, storage) => {
    outbox.append([draft("a")], { now: 0 });
    outbox.pending();
    const reborn = new EventOutbox(storage.sql);
    expect(reborn.pending()?.events.map((event) => event.seq)).toEqual([1]);
    reborn.append([draft("b")], { now: 0 });
    expect(drain(reborn)).toEqual([1, 2]);
  });
});

it("begins a new block before a row grows past its bound, and hands blocks out in order", async () => {
  await withOutbox((outbox, storage) => {
    for (let index = 0; index < 10; index += 1) outbox.append([draft("x".repeat(50_000))], { now: 0 });
    const rows = storage.sql.exec<{ bytes: number }>("SELECT bytes FROM event_outbox").toArray();
    expect(rows.length).toBeGreaterThan(3);
    expect(Math.max(...rows.map((row) => row.bytes))).toBeLessThanOrEqual(128 * 1024);
    expect(drain(outbox)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(storage.sql.exec("SELECT * FROM event_outbox").toArray()).toHaveLength(1);
  });
});

it("spreads the events of one commit over blocks, so that no row grows with what a client sent at once (P8)", async () => {
  await withOutbox((outbox, storage) => {
    outbox.append([draft("a")], { now: 0 });
    drain(outbox);
    const many = Array.from({ length: 3_000 }, (_, index) => draft("字".repeat(index % 400)));
    expect(outbox.append([draft("x".repeat(150_000)), ...many], { now: 0, threadChanged: true })).toBe(3_002);
    const rows = storage.sql
      .exec<{ bytes: number; size: number }>("SELECT bytes, length(CAST(events AS BLOB)) AS size FROM event_outbox")
      .toArray();
    expect(rows.filter((row) => row.bytes > 128 * 1024)).toHaveLength(1);
    expect(rows.map((row) => row.bytes)).toEqual(rows.map((row) => row.size));
    expect(outbox.pending()?.threadChanges).toBe(1);
    expect(drain(outbox)).toEqual(Array.from({ length: 3_001 }, (_, index) => index + 2));
    expect(storage.sql.exec("SELECT * FROM event_outbox").toArray()).toHaveLength(1);
  });
});

it("counts bytes, not characters: appends of three-byte text begin a new block at the same bound (P8)", async () => {
  await withOutbox((outbox, storage) => {
    for (let index = 0; index < 8; index += 1) outbox.append([draft("字".repeat(15_000))], { now: 0 });
    const rows = storage.sql
      .exec<{ bytes: number; size: number }>("SELECT bytes, length(CAST(events AS BLOB)) AS size FROM event_outbox")
      .toArray();
    expect(rows).toHaveLength(4);
    expect(Math.max(...rows.map((row) => row.size))).toBeLessThanOrEqual(128 * 1024);
    expect(rows.map((row) => row.bytes)).toEqual(rows.map((row) => row.size));
    outbox.append([draft("字".repeat(EVENT_CONTENT_CHARS_MAX + 1))], { now: 0 });
    const [largest] = storage.sql
      .exec<{ size: number }>("SELECT max(length(CAST(events AS BLOB))) AS size FROM event_outbox")
      .toArray();
    expect(largest?.size).toBeLessThan(2_000_000);
    expect(drain(outbox)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});

it("cuts a content that could not be stored and says so", async () => {
  await withOutbox((outbox) => {
    outbox.append([draft("x".repeat(EVENT_CONTENT_CHARS_MAX + 1))], { now: 0 });
    const event = outbox.pending()!.events[0]!;
    expect((event.content as string).length).toBe(EVENT_CONTENT_CHARS_MAX);
    expect(event.metadata).toEqual({ content_truncated: true, original_chars: EVENT_CONTENT_CHARS_MAX + 3 });
  });
});

it("R116 costs one row an append and one row a flush", async () => {
  await withOutbox((outbox, storage) => {
    outbox.append([draft("a")], { now: 0 });
    const before = totalChanges(storage);
    outbox.append([draft("b"), draft("c")], { now: 0 });
    expect(totalChanges(storage) - before).toBe(1);
    outbox.settle(outbox.pending()!);
    expect(totalChanges(storage) - before).toBe(2);
  });
});

function totalChanges(storage: DurableObjectStorage): number {
  return storage.sql.exec<{ n: number }>("SELECT total_changes() AS n").one().n;
}
