/** What reading stored frames costs, and that the cache behind it never shows what storage no longer has. */
import { env, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { type Frame, FrameLog } from "../../../src/platform/durable-storage/frame-log.ts";
import { MeteredSql } from "../../../src/platform/durable-storage/metered-sql.ts";
import { ensureSchema } from "../../../src/platform/durable-storage/object-schema.ts";

const BLOCK = 100;

let objects = 0;

/** A log with blocks of 100 frames, and its meter. */
async function withLog(blocks: number, act: (log: FrameLog, meter: MeteredSql) => void): Promise<void> {
  const stub = env.THREADS.get(env.THREADS.idFromName(`frame-reads-${objects++}`));
  await runInDurableObject(stub, (_instance, state) => {
    ensureSchema(state.storage);
    const meter = new MeteredSql(state.storage.sql);
    const log = new FrameLog(meter.labelled("frames"));
    for (let block = 0; block < blocks; block += 1) log.writeBlock("run", frames(block * BLOCK + 1));
    meter.reset();
    act(log, meter);
  });
}

function frames(firstId: number): Frame[] {
  return Array.from({ length: BLOCK }, (_, place) => ({ id: firstId + place, event: "messages", data: "1" }));
}

function readIds(log: FrameLog, runId: string): number[] {
  const ids: number[] = [];
  for (let found = log.next(runId, 0); found.kind === "frame"; found = log.next(runId, ids.at(-1) ?? 0)) {
    ids.push(found.frame.id);
  }
  return ids;
}

describe("reading stored frames", () => {
  it("asks storage a few times a block, not a few times a frame (P8)", async () => {
    await withLog(3, (log, meter) => {
      expect(readIds(log, "run")).toEqual(Array.from({ length: 3 * BLOCK }, (_, place) => place + 1));
      expect(meter.totals().statements).toBeLessThanOrEqual(3 * 3 + 1);
    });
  });

  it("tells of the gap when the block it had read was dropped", async () => {
    await withLog(2, (log) => {
      expect(log.next("run", 0)).toMatchObject({ kind: "frame", frame: { id: 1 } });
      log.dropOldest("run");
      expect(log.next("run", 10)).toEqual({ kind: "gap", firstAvailableId: BLOCK + 1 });
    });
  });

  it("has nothing once the run's frames expired", async () => {
    await withLog(1, (log) => {
      expect(log.next("run", 10)).toMatchObject({ kind: "frame", frame: { id: 11 } });
      log.expire("run");
      expect(log.next("run", 10)).toEqual({ kind: "none" });
    });
  });

  it("does not take another run's block for its own", async () => {
    await withLog(1, (log) => {
      expect(readIds(log, "run")).toHaveLength(BLOCK);
      expect(log.next("ru", 10)).toEqual({ kind: "none" });
    });
  });
});
