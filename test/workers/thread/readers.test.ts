/**
 * Many readers of one run, and ids over many attempts (issue 4, Readers). What is counted here is exact; times and memory
 * of real sockets are the bench's (`bench/readers.ts`).
 */
import { env, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { FrameCursor, type FrameSource } from "../../../src/durable-objects/frame-cursor.ts";
import { FrameReader } from "../../../src/durable-objects/frame-reader.ts";
import { FRAME_RESERVATION, FrameLog } from "../../../src/platform/durable-storage/frame-log.ts";
import { LiveFrames } from "../../../src/platform/durable-storage/live-frames.ts";
import { ensureSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { VersionSignal } from "../../../src/platform/durable-storage/version-signal.ts";

const STALLED = 50;
const FRAMES = 10_000;
const SUBSCRIBERS = 1_000;

/** A run of this object, with what its row would say of reservations. */
class Run {
  readonly signal = new VersionSignal();
  readonly log: FrameLog;
  ended = false;
  reserved: number = FRAME_RESERVATION;
  frames: LiveFrames;

  constructor(storage: DurableObjectStorage) {
    this.log = new FrameLog(storage.sql);
    this.frames = this.#open(1);
  }

  /** What a crash leaves: the stored blocks and the reservation. */
  recover(attempt: number): void {
    this.frames = this.#open(attempt);
  }

  source(): FrameSource {
    return {
      next: (after) => this.frames.next(after),
      ended: () => this.ended,
      signal: this.signal,
      renderValues: async () => "{}",
      renderHead: async () => "{}",
      renderFinal: async () => "{}",
    };
  }

  #open(attempt: number): LiveFrames {
    return new LiveFrames({
      runId: "run",
      log: this.log,
      signal: this.signal,
      reserved: this.reserved,
      isFirstAttempt: attempt === 1,
      bytesMax: 1 << 26,
      saveReservation: (reserved) => void (this.reserved = reserved),
    });
  }
}

async function withRun(name: string, act: (run: Run) => Promise<void>): Promise<void> {
  const stub = env.THREADS.get(env.THREADS.idFromName(`readers-${name}`));
  await runInDurableObject(stub, async (_instance, state) => {
    ensureSchema(state.storage);
    await act(new Run(state.storage));
  });
}

function open(source: FrameSource, afterId = 0): ReadableStream<Uint8Array> {
  const cursor = new FrameCursor({ source, afterId, wants: () => true });
  return new FrameReader({ source: cursor, now: () => 0 }).stream();
}

const idsIn = (text: string) => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));

/** 500,000 frames are read: a loaded machine takes its time. */
const PATIENT = { timeout: 90_000 };

describe("readers of one run", PATIENT, () => {
  it("50 that stall for 10,000 frames hold one bounded text each, and each resumes to the identical list (P8)", async () => {
    await withRun("stalled", async (run) => {
      const asked: number[] = [];
      const readers = Array.from({ length: STALLED }, (_, reader) => {
        const source = run.source();
        const counting = {
          ...source,
          next: (after: number) => ((asked[reader] = (asked[reader] ?? 0) + 1), source.next(after)),
        };
        return open(counting).getReader();
      });
      for (let frame = 0; frame < 300; frame += 1) run.frames.append("messages", `"${"x".repeat(100)}"`);
      const first = await Promise.all(readers.map((reader) => reader.read()));
      const held = first.reduce((sum, { value }) => sum + value!.byteLength, 0);
      expect(held).toBeLessThan(STALLED * 18_000);
      const before = [...asked];
      for (let frame = 300; frame < FRAMES; frame += 1) run.frames.append("messages", `"${"x".repeat(100)}"`);
      // The run asked nothing of them, and they asked nothing of the run.
      expect(asked).toEqual(before);
      run.ended = true;
      const lists: number[][] = [];
      for (const [place, reader] of readers.entries()) {
        await reader.cancel();
        const seen = idsIn(new TextDecoder().decode(first[place]!.value));
        const rest = await new Response(open(run.source(), seen.at(-1))).text();
        lists.push([...seen, ...idsIn(rest)]);
      }
      const expected = Array.from({ length: FRAMES }, (_, place) => place + 1).join();
      for (const list of lists) expect(list.join()).toBe(expected);
    });
  });

  it("1,000 subscribers get the identical list, live", async () => {
    await withRun("subscribers", async (run) => {
      const texts = Array.from({ length: SUBSCRIBERS }, () => new Response(open(run.source())).text());
      for (let frame = 0; frame < 100; frame += 1) {
        run.frames.append("messages", `"token ${frame}"`);
        if (frame % 10 === 0) await scheduler.wait(0);
      }
      run.ended = true;
      run.signal.bump();
      const [first, ...others] = await Promise.all(texts);
      expect(idsIn(first!)).toEqual(Array.from({ length: 100 }, (_, place) => place + 1));
      expect(others.every((text) => text === first)).toBe(true);
    });
  });

  it("no id is given out twice, whenever a run crashes and however often, and none falls behind what a client has", async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const random = seeded(seed);
      await withRun(`ids-${seed}`, async (run) => {
        const given: number[] = [];
        for (let attempt = 1; attempt <= 6; attempt += 1) {
          if (attempt > 1) run.recover(attempt);
          const count = 1 + Math.floor(random() * (random() < 0.3 ? 3 * FRAME_RESERVATION : 40));
          for (let frame = 0; frame < count; frame += 1) {
            given.push(run.frames.append("custom", String(frame)));
            if (random() < 0.05) run.frames.flush();
          }
        }
        expect(given.every((id, place) => place === 0 || id > given[place - 1]!)).toBe(true);
        // What a client replays is what was given out, in that order, less what the crashes took.
        run.ended = true;
        const replayed = idsIn(await new Response(open(run.source())).text());
        const known = new Set(given);
        expect(replayed.every((id, place) => known.has(id) && (place === 0 || id > replayed[place - 1]!))).toBe(true);
      });
    }
  });
});

/** A small generator: the same numbers for the same seed. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
