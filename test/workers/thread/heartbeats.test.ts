import { expect, it, vi } from "vitest";
import { FrameReader } from "../../../src/durable-objects/frame-reader.ts";
import { LiveRuns, READER_WATCH_MS } from "../../../src/durable-objects/live-runs.ts";
import { HEARTBEAT_MS } from "../../../src/protocol/heartbeat.ts";
import { VersionSignal } from "../../../src/platform/durable-storage/version-signal.ts";

// In a file of its own: faked timers would fire those of live objects in the wrong context.
it("gives a reader a heartbeat comment when nothing came for its interval, and then again", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const reader = new FrameReader({
      source: { poll: async () => "none", hasText: () => false, signal: new VersionSignal() },
      now: () => 0,
    });
    const body = reader.stream().getReader();
    for (let beat = 0; beat < 2; beat += 1) {
      const read = body.read();
      await vi.advanceTimersByTimeAsync(HEARTBEAT_MS);
      expect(new TextDecoder().decode((await read).value)).toBe(": heartbeat\n\n");
    }
    await body.cancel();
  } finally {
    vi.useRealTimers();
  }
});

it("drops a reader whose client left, and nobody looks any more once there is none; the run is not asked", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
  try {
    const live = new LiveRuns(() => 0);
    let left = 0;
    const readers = Array.from({ length: 3 }, () => {
      const source = { poll: async () => "none" as const, hasText: () => false, signal: new VersionSignal() };
      const reader = new FrameReader({ source, now: () => 0, onCancel: () => void (left += 1) });
      live.watch(reader);
      return reader.stream().getReader();
    });
    const [gone, ...others] = readers;
    // It waits for a frame as its client leaves.
    const waiting = gone!.read();
    await gone!.cancel();
    expect((await waiting).done).toBe(true);
    expect([left, live.readers]).toEqual([1, 3]);
    await vi.advanceTimersByTimeAsync(READER_WATCH_MS);
    expect(live.readers).toBe(2);
    for (const other of others) await other.cancel();
    await vi.advanceTimersByTimeAsync(READER_WATCH_MS);
    // What is left is the wait that each cancelled read had begun, at most one heartbeat long.
    await vi.advanceTimersByTimeAsync(HEARTBEAT_MS);
    expect([left, live.readers, vi.getTimerCount()]).toEqual([3, 0, 0]);
  } finally {
    vi.useRealTimers();
  }
});
