import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { DurableCheckpointSaver } from "../../../src/platform/durable-storage/checkpoint-saver.ts";
import { MeteredSql } from "../../../src/platform/durable-storage/metered-sql.ts";
import { ensureSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { buildAnswerGraph, buildToolGraph, human, PARALLEL_CALLS } from "../../support/delta-graph.ts";
import { inFreshObject } from "../../support/object-storage.ts";

const config = { configurable: { thread_id: "t" }, durability: "sync" as const };

function results(messages: readonly BaseMessage[]): string[] {
  return messages.filter((message) => ToolMessage.isInstance(message)).map((message) => message.text);
}

/** Releases the calls in reverse order of their place, each once all are waiting. */
function reversed(): (place: number) => Promise<void> {
  const releases: (() => void)[] = [];
  return async (place) => {
    const mine = new Promise<void>((resolve) => (releases[place] = resolve));
    if (releases.filter(Boolean).length === PARALLEL_CALLS) releases.at(-1)!();
    await mine;
    releases[place - 1]?.();
  };
}

describe("a real graph on the durable saver", () => {
  it("a one-turn run on an existing thread writes five rows: three checkpoints and two tasks' writes", async () => {
    await inFreshObject(async (storage) => {
      ensureSchema(storage);
      const meter = new MeteredSql(storage.sql);
      const graph = buildAnswerGraph(new DurableCheckpointSaver({ storage, sql: meter.labelled("checkpoints") }));
      await graph.invoke(human("first"), config);
      meter.reset();
      const state = await graph.invoke(human("second"), config);
      expect(state.messages.map((message) => message.text)).toEqual(["first", "saw 1", "second", "saw 3"]);
      expect(meter.byLabel()["checkpoints"]?.rowsWritten).toBe(5);
    });
  });

  it("six parallel results have the same order live, in state, and for a saver made anew", async () => {
    await inFreshObject(async (storage) => {
      const graph = buildToolGraph(new DurableCheckpointSaver({ storage }), reversed());
      const live = await graph.invoke(human("go"), config);
      const expected = Array.from({ length: PARALLEL_CALLS }, (_, place) => `result ${place}`);
      expect(results(live.messages)).toEqual(expected);
      const state = await graph.getState(config);
      expect(results(state.values.messages)).toEqual(expected);

      const again = buildToolGraph(new DurableCheckpointSaver({ storage }), reversed());
      const reread = await again.getState(config);
      expect(reread.values.messages.map((message: BaseMessage) => message.id)).toEqual(
        live.messages.map((message) => message.id),
      );
      expect(results(reread.values.messages)).toEqual(expected);
    });
  });

  it("P2 tool results that were stored before a crash are not run again and keep their places", async () => {
    await inFreshObject(async (storage) => {
      const crash = new Error("the object died");
      const ran: number[] = [];
      const settle = async (place: number) => {
        ran.push(place);
        if (place === 3 && ran.length <= PARALLEL_CALLS) throw crash;
      };
      const first = buildToolGraph(new DurableCheckpointSaver({ storage }), settle);
      await expect(first.invoke(human("go"), config)).rejects.toThrow(crash);
      const stored = (await new DurableCheckpointSaver({ storage }).getTuple(config))!.pendingWrites!;
      const finished = new Set(stored.filter(([, channel]) => channel === "messages").map(([task]) => task)).size;
      ran.length = PARALLEL_CALLS;

      const second = buildToolGraph(new DurableCheckpointSaver({ storage }), settle);
      const state = await second.invoke(null, config);
      expect(ran.length - PARALLEL_CALLS).toBe(PARALLEL_CALLS - finished);
      expect(finished).toBeGreaterThan(0);
      expect(results(state.messages)).toEqual(Array.from({ length: PARALLEL_CALLS }, (_, n) => `result ${n}`));
    });
  });

  it("ids of messages are the same over ten reads and in the history", async () => {
    await inFreshObject(async (storage) => {
      const graph = buildAnswerGraph(new DurableCheckpointSaver({ storage }));
      await graph.invoke(human("one"), config);
      const { messages } = await graph.invoke(human("two"), config);
      const ids = messages.map((message) => message.id);
      for (let read = 0; read < 10; read += 1) {
        const state = await buildAnswerGraph(new DurableCheckpointSaver({ storage })).getState(config);
        expect(state.values.messages.map((message: BaseMessage) => message.id)).toEqual(ids);
      }
      const lengths: number[] = [];
      for await (const past of graph.getStateHistory(config)) {
        const seen = (past.values.messages ?? []).map((message: BaseMessage) => message.id);
        expect(seen).toEqual(ids.slice(0, seen.length));
        lengths.push(seen.length);
      }
      expect(lengths).toEqual([4, 3, 2, 2, 1, 0]);
    });
  });
});
