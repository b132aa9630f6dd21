import { expect, it, vi } from "vitest";
import { FrameReader } from "../../../src/durable-objects/frame-reader.ts";
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
