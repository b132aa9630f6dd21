import type { BaseMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { DELTA_FOLDS, deltaFoldsOf } from "../../../src/agent/thread-state/delta-folds.ts";
import { CheckpointRetention, decideKeepFrom } from "../../../src/platform/durable-storage/checkpoint-retention.ts";
import { DurableCheckpointSaver } from "../../../src/platform/durable-storage/checkpoint-saver.ts";
import { MeteredSql } from "../../../src/platform/durable-storage/metered-sql.ts";
import { ensureSchema, hasSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { idOf, putCheckpoint, threadConfig } from "../../support/checkpoints.ts";
import { buildAnswerGraph, buildToolGraph, human } from "../../support/delta-graph.ts";
import { inFreshObject } from "../../support/object-storage.ts";

const config = { configurable: { thread_id: "t" }, durability: "sync" as const };

interface Scene {
  readonly storage: DurableObjectStorage;
  readonly saver: DurableCheckpointSaver;
  readonly graph: ReturnType<typeof buildAnswerGraph>;
  readonly retention: CheckpointRetention;
  readonly meter: MeteredSql;
}

async function inScene(use: (scene: Scene) => Promise<void>): Promise<void> {
  await inFreshObject(async (storage) => {
    ensureSchema(storage);
    const meter = new MeteredSql(storage.sql);
    const saver = new DurableCheckpointSaver({ storage, sql: meter.labelled("checkpoints") });
    const graph = buildAnswerGraph(saver);
    const deltaFolds = deltaFoldsOf(graph.channels);
    const sql = meter.labelled("retention");
    const retention = new CheckpointRetention({ storage, serde: saver.serde, deltaFolds, sql });
    await use({ storage, saver, graph, retention, meter });
  });
}

/** Runs the graph and answers the checkpoint each run started at. */
async function runTimes({ graph, saver }: Scene, times: number): Promise<string[]> {
  const bases: string[] = [];
  for (let run = 0; run < times; run += 1) {
    const head = await saver.getTuple(config);
    if (head !== undefined) bases.push(head.checkpoint.id);
    await graph.invoke(human(`question ${run}`), config);
  }
  return bases;
}

async function statesOf({ graph }: Scene): Promise<{ id: string; values: unknown }[]> {
  const states: { id: string; values: unknown }[] = [];
  for await (const state of graph.getStateHistory(config)) {
    const messages = (state.values.messages ?? []).map((message: BaseMessage) => [message.id, message.text]);
    const { title, turns } = state.values;
    const checkpointId = state.config.configurable!["checkpoint_id"] as string;
    states.push({ id: checkpointId, values: { messages, title, turns, next: state.next } });
  }
  return states;
}

function idsOf(storage: DurableObjectStorage, table: string): string[] {
  const query = `SELECT DISTINCT checkpoint_id AS id FROM ${table} ORDER BY checkpoint_id`;
  return storage.sql
    .exec<{ id: string }>(query)
    .toArray()
    .map((row) => row.id);
}

describe("retention on a real graph with messages in a delta channel", () => {
  it("every kept checkpoint reads the same before and after: no message is lost", async () => {
    await inScene(async (scene) => {
      const bases = await runTimes(scene, 6);
      const keepFrom = bases.at(-2)!;
      const before = await statesOf(scene);
      expect(await scene.retention.pruneBefore("t", keepFrom)).toEqual({ ok: true, value: null });
      const after = await statesOf(scene);
      expect(after).toEqual(before.filter(({ id }) => id >= keepFrom));
      expect(after.length).toBeLessThan(before.length);
      expect(idsOf(scene.storage, "checkpoints")[0]).toBe(keepFrom);
      expect(idsOf(scene.storage, "checkpoint_writes").every((id) => id >= keepFrom)).toBe(true);
    });
  });

  it("the thread goes on after a pruning, and after one per run for a long time", async () => {
    await inScene(async (scene) => {
      const bases = await runTimes(scene, 3);
      for (let run = 3; run < 15; run += 1) {
        bases.push((await scene.saver.getTuple(config))!.checkpoint.id);
        await scene.graph.invoke(human(`question ${run}`), config);
        await scene.retention.pruneBefore("t", bases.at(-2)!);
      }
      const fresh = buildAnswerGraph(new DurableCheckpointSaver({ storage: scene.storage }));
      const { values } = await fresh.getState(config);
      const texts = values.messages.map((message: BaseMessage) => message.text);
      expect(texts).toEqual(Array.from({ length: 15 }, (_, n) => [`question ${n}`, `saw ${2 * n + 1}`]).flat());
      expect(values).toMatchObject({ title: "about question 0", turns: 15 });
      expect(idsOf(scene.storage, "checkpoints").length).toBeLessThanOrEqual(7);
    });
  });

  it("pruning one run's worth writes at most seven rows, and nothing when done again", async () => {
    await inScene(async (scene) => {
      const bases = await runTimes(scene, 5);
      await scene.retention.pruneBefore("t", bases[2]!);
      scene.meter.reset();
      await scene.retention.pruneBefore("t", bases[3]!);
      expect(scene.meter.totals().rowsWritten).toBeLessThanOrEqual(7);
      expect(scene.meter.totals().rowsWritten).toBeGreaterThan(0);
      scene.meter.reset();
      await scene.retention.pruneBefore("t", bases[3]!);
      expect(scene.meter.totals().rowsWritten).toBe(0);
    });
  });

  it("the base of the oldest kept run can still be forked from", async () => {
    await inScene(async (scene) => {
      const bases = await runTimes(scene, 4);
      const keepFrom = bases.at(-1)!;
      await scene.retention.pruneBefore("t", keepFrom);
      const fork = { ...config, configurable: { thread_id: "t", checkpoint_id: keepFrom } };
      const state = await scene.graph.invoke(human("instead"), fork);
      expect(state.messages.slice(-2).map((message) => message.text)).toEqual(["instead", "saw 7"]);
      expect(state.title).toBe("about question 0");
    });
  });

  it("a branch that leaves the pruned part becomes whole as well", async () => {
    await inScene(async (scene) => {
      const bases = await runTimes(scene, 4);
      const old = { ...config, configurable: { thread_id: "t", checkpoint_id: bases[0]! } };
      const branched = await scene.graph.invoke(human("branch"), old);
      const before = await statesOf(scene);
      const keepFrom = bases.at(-1)!;
      await scene.retention.pruneBefore("t", keepFrom);
      expect(await statesOf(scene)).toEqual(before.filter(({ id }) => id >= keepFrom));
      const { values } = await scene.graph.getState(config);
      expect(values.messages).toHaveLength(branched.messages.length);
      expect(branched.messages.map((message) => message.text)).toEqual(["question 0", "saw 1", "branch", "saw 3"]);
    });
  });

  it("a run that waits in the middle of parallel results resumes after pruning with all of them", async () => {
    await inScene(async (scene) => {
      await runTimes(scene, 3);
      const keepFrom = (await scene.saver.getTuple(config))!.checkpoint.id;
      const crash = new Error("died");
      let failing = true;
      const settle = async (place: number) => {
        if (place === 2 && failing) throw crash;
      };
      const tools = buildToolGraph(scene.saver, settle);
      await expect(tools.invoke(human("go"), config)).rejects.toThrow(crash);
      await scene.retention.pruneBefore("t", keepFrom);
      failing = false;
      const state = await tools.invoke(null, config);
      expect(state.messages.map((message) => message.text).slice(-7, -1)).toEqual(
        Array.from({ length: 6 }, (_, n) => `result ${n}`),
      );
      expect(state.messages).toHaveLength(6 + 1 + 1 + 6 + 1);
    });
  });

  it("a delta channel that the given graph does not know is refused, and nothing is deleted", async () => {
    await inScene(async (scene) => {
      const bases = await runTimes(scene, 3);
      const before = idsOf(scene.storage, "checkpoints");
      const blind = new CheckpointRetention({ storage: scene.storage, serde: scene.saver.serde, deltaFolds: {} });
      const pruned = await blind.pruneBefore("t", bases.at(-1)!);
      expect(pruned).toEqual({ ok: false, error: { reason: "unknown_delta_channel", channel: "messages" } });
      expect(idsOf(scene.storage, "checkpoints")).toEqual(before);
    });
  });
});

describe("retention of other namespaces", () => {
  it("a finished child goes, a newer one and another thread stay, a subgraph's own memory keeps its last state", async () => {
    await inScene(async ({ saver, retention, storage }) => {
      const finished = await putCheckpoint(saver, threadConfig("t", "tools:1"));
      await putCheckpoint(saver, threadConfig("t", "tools:1|tools:2"));
      const memory = await putCheckpoint(saver, threadConfig("t", "memory"), {
        values: { kept: "old", changed: 1 },
        versions: { kept: 1, changed: 1 },
      });
      const remembered = await putCheckpoint(saver, memory, {
        values: { kept: "old", changed: 2 },
        versions: { kept: 1, changed: 2 },
        changed: ["changed"],
      });
      const foreign = await putCheckpoint(saver, threadConfig("u", "tools:1"));
      const head = await putCheckpoint(saver, threadConfig());
      const running = await putCheckpoint(saver, threadConfig("t", "tools:3"));

      expect(await retention.pruneBefore("t", idOf(head))).toEqual({ ok: true, value: null });
      expect(await saver.getTuple(finished)).toBeUndefined();
      expect(await saver.getTuple(memory)).toBeUndefined();
      expect(await saver.getTuple(running)).toBeDefined();
      expect(await saver.getTuple(foreign)).toBeDefined();
      const kept = await saver.getTuple(threadConfig("t", "memory"));
      expect(kept?.checkpoint.id).toBe(idOf(remembered));
      expect(kept?.checkpoint.channel_values).toEqual({ kept: "old", changed: 2 });
      expect(storage.sql.exec("SELECT 1 FROM checkpoints").toArray()).toHaveLength(4);
    });
  });

  it("an object that accepted nothing stays empty", async () => {
    await inFreshObject(async (storage) => {
      const { serde } = new DurableCheckpointSaver({ storage });
      const retention = new CheckpointRetention({ storage, serde, deltaFolds: DELTA_FOLDS });
      expect(await retention.pruneBefore("t", "1f")).toEqual({ ok: true, value: null });
      expect(hasSchema(storage)).toBe(false);
    });
  });
});

describe("decideKeepFrom", () => {
  it("keeps from the oldest base of the last K runs, and nothing goes while there are fewer", () => {
    expect(decideKeepFrom(["5", "3", "1"], 2)).toBe("3");
    expect(decideKeepFrom(["5", "2", "4", "1"], 3)).toBe("2");
    expect(decideKeepFrom(["5", "3"], 3)).toBeNull();
    expect(decideKeepFrom([], 1)).toBeNull();
    expect(decideKeepFrom(["5", null], 2)).toBeNull();
    expect(decideKeepFrom([null, "5", "3"], 3)).toBeNull();
    expect(decideKeepFrom(["5", null], 1)).toBe("5");
  });
});

it("ThreadState's only delta channel is messages, and its fold is known", () => {
  expect(Object.keys(DELTA_FOLDS)).toEqual(["messages"]);
});
