import { env, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { FrameCursor, type FrameSource } from "../../../src/durable-objects/frame-cursor.ts";
import { FrameReader, STALL_MS } from "../../../src/durable-objects/frame-reader.ts";
import { FRAME_BLOCK_BYTES_MAX, FRAME_RESERVATION, FrameLog } from "../../../src/platform/durable-storage/frame-log.ts";
import { LiveFrames } from "../../../src/platform/durable-storage/live-frames.ts";
import { ensureSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { VersionSignal } from "../../../src/platform/durable-storage/version-signal.ts";

let objects = 0;

async function inObject(act: (storage: DurableObjectStorage) => Promise<void> | void): Promise<void> {
  const stub = env.THREADS.get(env.THREADS.idFromName(`frames-${objects++}`));
  await runInDurableObject(stub, async (_instance, state) => {
    ensureSchema(state.storage);
    await act(state.storage);
  });
}

interface OpenOptions {
  readonly attempt?: number;
  readonly reserved?: number;
  readonly bytesMax?: number;
}

function open(
  storage: DurableObjectStorage,
  { attempt = 1, reserved = FRAME_RESERVATION, bytesMax = 1 << 24 }: OpenOptions = {},
) {
  const log = new FrameLog(storage.sql);
  const signal = new VersionSignal();
  const reservations: number[] = [];
  const frames = new LiveFrames({
    runId: "run",
    log,
    signal,
    reserved,
    isFirstAttempt: attempt === 1,
    bytesMax,
    saveReservation: (upTo) => reservations.push(upTo),
  });
  return { log, frames, signal, reservations };
}

function readAll(next: (after: number) => ReturnType<LiveFrames["next"]>, from = 0): { ids: number[]; gaps: number[] } {
  const ids: number[] = [];
  const gaps: number[] = [];
  let cursor = from;
  for (;;) {
    const found = next(cursor);
    if (found.kind === "none") return { ids, gaps };
    if (found.kind === "gap") {
      gaps.push(found.firstAvailableId);
      cursor = found.firstAvailableId - 1;
      continue;
    }
    ids.push(found.frame.id);
    cursor = found.frame.id;
  }
}

describe("LiveFrames", () => {
  it("gives a reader every frame in order, across stored blocks and what is pending", async () => {
    await inObject((storage) => {
      const { frames } = open(storage);
      for (let index = 0; index < 10; index += 1) {
        frames.append("custom", JSON.stringify(index));
        if (index % 4 === 3) frames.flush();
      }
      expect(readAll((after) => frames.next(after)).ids).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      expect(readAll((after) => frames.next(after), 7).ids).toEqual([8, 9, 10]);
    });
  });

  it("reserves ids before it hands them out, one row per 500", async () => {
    await inObject((storage) => {
      const { frames, reservations } = open(storage);
      for (let index = 0; index < FRAME_RESERVATION - 1; index += 1) frames.append("messages", "1");
      expect(reservations).toEqual([]);
      frames.append("messages", "1");
      expect(reservations).toEqual([2 * FRAME_RESERVATION]);
    });
  });

  it("numbers a second attempt from the end of the reservation: ids skip, never repeat", async () => {
    await inObject((storage) => {
      const first = open(storage);
      for (let index = 0; index < 3; index += 1) first.frames.append("messages", "1");
      first.frames.flush();
      first.frames.append("messages", "lost with the object");
      const second = open(storage, { attempt: 2 });
      second.frames.append("metadata", "{}");
      expect(readAll((after) => second.frames.next(after)).ids).toEqual([1, 2, 3, FRAME_RESERVATION]);
    });
  });

  it("never lets a large frame share its row with others, so that no row passes 2 MB whatever the characters (P8)", async () => {
    await inObject((storage) => {
      const { frames } = open(storage);
      frames.append("custom", JSON.stringify("字".repeat(250_000)));
      frames.append("custom", JSON.stringify("字".repeat(599_000)));
      for (let index = 0; index < 30; index += 1) frames.append("custom", JSON.stringify("字".repeat(10_000)));
      frames.flush();
      const sizes = storage.sql
        .exec<{ size: number }>("SELECT length(CAST(frames AS BLOB)) AS size FROM frame_blocks")
        .toArray();
      expect(sizes.length).toBeGreaterThan(2);
      expect(sizes.filter(({ size }) => size > FRAME_BLOCK_BYTES_MAX)).toHaveLength(2);
      expect(Math.max(...sizes.map(({ size }) => size))).toBeLessThan(2_000_000);
      expect(readAll((after) => frames.next(after)).ids).toHaveLength(32);
    });
  });

  it("counts bytes, not characters: a block and a run of three-byte text keep the bounds of any other (P8)", async () => {
    await inObject((storage) => {
      const { frames, log } = open(storage, { bytesMax: 500_000 });
      for (let index = 0; index < 60; index += 1) frames.append("custom", JSON.stringify("字".repeat(4_000)));
      frames.flush();
      const rows = storage.sql
        .exec<{ bytes: number; size: number }>("SELECT bytes, length(CAST(frames AS BLOB)) AS size FROM frame_blocks")
        .toArray();
      expect(rows.map((row) => row.bytes)).toEqual(rows.map((row) => row.size));
      expect(Math.max(...rows.map((row) => row.size))).toBeLessThanOrEqual(FRAME_BLOCK_BYTES_MAX);
      const stored = rows.reduce((sum, row) => sum + row.size, 0);
      expect(stored).toBeLessThanOrEqual(500_000);
      expect(log.storedBytes("run")).toBe(stored);
      const { ids, gaps } = readAll((after) => frames.next(after), 2);
      expect(gaps).toEqual([ids[0]]);
      expect(ids).toEqual(Array.from({ length: ids.length }, (_, index) => 61 - ids.length + index));
    });
  });

  it("keeps a run under its byte bound and tells a reader of the gap (P8)", async () => {
    await inObject((storage) => {
      const { frames, log } = open(storage, { bytesMax: 50_000 });
      for (let index = 0; index < 20; index += 1) {
        frames.append("custom", JSON.stringify("x".repeat(10_000)));
        frames.flush();
      }
      expect(log.storedBytes("run")).toBeLessThanOrEqual(50_000);
      const { ids, gaps } = readAll((after) => frames.next(after), 2);
      expect(gaps).toEqual([ids[0]]);
      expect(ids.at(-1)).toBe(20);
    });
  });
});

function sourceOf(frames: LiveFrames, signal: VersionSignal, ended: () => boolean): FrameSource {
  return {
    next: (after) => frames.next(after),
    ended,
    signal,
    renderValues: async (checkpointId) => JSON.stringify({ checkpointId }),
    renderHead: async () => "{}",
    renderFinal: async () => "{}",
  };
}

function reader(source: FrameSource, options: { afterId?: number; now?: () => number } = {}): FrameReader {
  const cursor = new FrameCursor({ source, afterId: options.afterId ?? 0, wants: () => true });
  return new FrameReader({ source: cursor, now: options.now ?? (() => 0) });
}

describe("FrameReader", () => {
  it("sends event, data and id, and renders a values reference", async () => {
    await inObject(async (storage) => {
      const { frames, signal } = open(storage);
      frames.append("metadata", '{"run_id":"run"}');
      frames.append("values", { checkpointId: "c1" });
      const text = await new Response(reader(sourceOf(frames, signal, () => true)).stream()).text();
      expect(text).toBe(
        'event: metadata\ndata: {"run_id":"run"}\nid: 1\n\nevent: values\ndata: {"checkpointId":"c1"}\nid: 2\n\n',
      );
    });
  });

  it("holds a bounded text however many frames wait, and the run never waits for it (P8)", async () => {
    await inObject(async (storage) => {
      const { frames, signal } = open(storage);
      let asked = 0;
      const source = sourceOf(frames, signal, () => false);
      const counting: FrameSource = { ...source, next: (after) => (asked++, source.next(after)) };
      const stream = reader(counting).stream().getReader();
      for (let index = 0; index < 1_000; index += 1) frames.append("messages", JSON.stringify("x".repeat(1_000)));
      expect(asked).toBe(0);
      const { value } = await stream.read();
      expect(asked).toBe(16);
      expect(value!.byteLength).toBeLessThan(18_000);
      await stream.cancel();
    });
  });

  it("gives two readers the identical list", async () => {
    await inObject(async (storage) => {
      const { frames, signal } = open(storage);
      for (let index = 0; index < 50; index += 1) frames.append("custom", String(index));
      const source = sourceOf(frames, signal, () => true);
      const [first, second] = await Promise.all([
        new Response(reader(source).stream()).text(),
        new Response(reader(source).stream()).text(),
      ]);
      expect(first).toBe(second);
      expect(first.match(/^id: /gm)).toHaveLength(50);
    });
  });

  it("wakes for a frame that comes later, and ends when the run does", async () => {
    await inObject(async (storage) => {
      const { frames, signal } = open(storage);
      let ended = false;
      const text = new Response(reader(sourceOf(frames, signal, () => ended)).stream()).text();
      await Promise.resolve();
      frames.append("custom", "1");
      ended = true;
      signal.bump();
      expect(await text).toBe("event: custom\ndata: 1\nid: 1\n\n");
    });
  });

  it("ends a reader that leaves frames waiting past the stall bound, and only that one", async () => {
    await inObject(async (storage) => {
      const { frames, signal } = open(storage);
      let now = 0;
      const source = sourceOf(frames, signal, () => false);
      const stalled = reader(source, { now: () => now });
      const body = stalled.stream().getReader();
      now = STALL_MS + 1;
      stalled.endIfStalled(now);
      expect(stalled.closed).toBe(false);
      frames.append("custom", "1");
      stalled.endIfStalled(now);
      expect(stalled.closed).toBe(true);
      await expect(body.read()).rejects.toThrow("stalled");
    });
  });

  it("ends one that left the gap or the end of its run waiting, as one that left frames", async () => {
    await inObject(async (storage) => {
      const { frames, signal } = open(storage, { bytesMax: 1_000 });
      for (let index = 0; index < 3; index += 1) {
        frames.append("custom", JSON.stringify("x".repeat(600)));
        frames.flush();
      }
      const behind = reader(
        sourceOf(frames, signal, () => false),
        { now: () => 0 },
      );
      const atEnd = reader(
        { ...sourceOf(frames, signal, () => true), next: () => ({ kind: "none" }) },
        { now: () => 0 },
      );
      const waiting = reader(
        { ...sourceOf(frames, signal, () => false), next: () => ({ kind: "none" }) },
        { now: () => 0 },
      );
      for (const each of [behind, atEnd, waiting]) {
        each.stream();
        each.endIfStalled(STALL_MS + 1);
      }
      expect([behind.closed, atEnd.closed, waiting.closed]).toEqual([true, true, false]);
    });
  });

  it("is not looked after any more once what it shows cannot be read", async () => {
    const source = { poll: () => Promise.reject(new Error("gone")), hasText: () => false, signal: new VersionSignal() };
    const failing = new FrameReader({ source, now: () => 0 });
    await expect(failing.stream().getReader().read()).rejects.toThrow("gone");
    expect(failing.closed).toBe(true);
  });

  it("says what is missing and gives the state when the asked frames are gone", async () => {
    await inObject(async (storage) => {
      const { frames, signal } = open(storage, { bytesMax: 1_000 });
      for (let index = 0; index < 3; index += 1) {
        frames.append("custom", JSON.stringify("x".repeat(600)));
        frames.flush();
      }
      const text = await new Response(reader(sourceOf(frames, signal, () => true)).stream()).text();
      expect(
        text.startsWith('event: gap\ndata: {"requested_id":0,"first_available_id":3}\n\nevent: values\ndata: {}\n\n'),
      ).toBe(true);
      expect(text.match(/^id: \d+/gm)).toEqual(["id: 3"]);
    });
  });
});
