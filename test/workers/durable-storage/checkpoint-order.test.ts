/** A clock that is set back: the checkpoint that was put last is the newest all the same. */
import type { BaseMessage } from "@langchain/core/messages";
import { uuid6 } from "@langchain/langgraph-checkpoint";
import { afterEach, expect, it, vi } from "vitest";
import { deltaFoldsOf } from "../../../src/agent/thread-state/delta-folds.ts";
import { findHeads } from "../../../src/platform/durable-storage/checkpoint-order.ts";
import { CheckpointRetention } from "../../../src/platform/durable-storage/checkpoint-retention.ts";
import { deleteNewerRows } from "../../../src/platform/durable-storage/checkpoint-rollback.ts";
import { DurableCheckpointSaver } from "../../../src/platform/durable-storage/checkpoint-saver.ts";
import { ensureSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { idOf, putCheckpoint, threadConfig } from "../../support/checkpoints.ts";
import { buildAnswerGraph, human } from "../../support/delta-graph.ts";
import { inFreshObject } from "../../support/object-storage.ts";

const HOUR_MS = 3_600_000;
const config = { configurable: { thread_id: "t" }, durability: "sync" as const };
const realNow = Date.now;

/** From here on the clock goes on from `ms` away of now. */
function setClock(ms: number): void {
  vi.spyOn(Date, "now").mockImplementation(() => realNow() + ms);
}

afterEach(() => {
  vi.restoreAllMocks();
});

interface Scene {
  readonly storage: DurableObjectStorage;
  readonly saver: DurableCheckpointSaver;
  readonly graph: ReturnType<typeof buildAnswerGraph>;
}

function inScene(use: (scene: Scene) => Promise<void>): Promise<void> {
  return inFreshObject(async (storage) => {
    ensureSchema(storage);
    const saver = new DurableCheckpointSaver({ storage });
    await use({ storage, saver, graph: buildAnswerGraph(saver) });
  });
}

async function statesOf({ graph }: Scene): Promise<{ id: string; texts: string[] }[]> {
  const states: { id: string; texts: string[] }[] = [];
  for await (const state of graph.getStateHistory(config)) {
    const texts = (state.values.messages ?? []).map((message: BaseMessage) => message.text);
    states.push({ id: state.config.configurable!["checkpoint_id"] as string, texts });
  }
  return states;
}

const lateRows = (storage: DurableObjectStorage) =>
  storage.sql.exec<{ n: number }>("SELECT count(*) AS n FROM checkpoints WHERE late_position IS NOT NULL").one().n;

it("LangGraph's own ids go back with the clock", () => {
  const before = uuid6(0);
  setClock(-HOUR_MS);
  expect(uuid6(1) < before).toBe(true);
});

it("runs before, behind and after a clock that is set back see each other's messages, in the order they ran", async () => {
  await inScene(async (scene) => {
    const expected: string[] = [];
    const ids: string[] = [];
    for (const [run, ms] of [0, -HOUR_MS, -2 * HOUR_MS, 0, -HOUR_MS].entries()) {
      setClock(ms);
      await scene.graph.invoke(human(`question ${run}`), config);
      expected.push(`question ${run}`, `saw ${expected.length + 1}`);
      const [head] = await statesOf(scene);
      expect(head!.texts).toEqual(expected);
      expect(scene.saver.headId("t")).toBe(head!.id);
      ids.push(head!.id);
    }
    expect(ids.toSorted()).not.toEqual(ids);
    expect(lateRows(scene.storage)).toBeGreaterThan(0);
    const states = await statesOf(scene);
    const lengths = states.map(({ texts }) => texts.length);
    expect(lengths).toEqual(lengths.toSorted((a, b) => b - a));
    // Pages by `before` are the whole list, cut.
    for (const [at, { id }] of states.entries()) {
      const before = { configurable: { checkpoint_id: id } };
      const rest: string[] = [];
      for await (const state of scene.graph.getStateHistory(config, { before })) {
        rest.push(state.config.configurable!["checkpoint_id"] as string);
      }
      expect(rest).toEqual(states.slice(at + 1).map((state) => state.id));
    }
  });
});

it("pruning and taking back follow the order of puts", async () => {
  await inScene(async (scene) => {
    await scene.graph.invoke(human("old"), config);
    setClock(-HOUR_MS);
    await scene.graph.invoke(human("kept"), config);
    const base = scene.saver.headId("t")!;
    const whole = await statesOf(scene);
    await scene.graph.invoke(human("taken back"), config);
    scene.storage.transactionSync(() => deleteNewerRows(scene.storage.sql, "t", base));
    expect(await statesOf(scene)).toEqual(whole);
    await scene.graph.invoke(human("newest"), config);
    const states = await statesOf(scene);
    const kept = states.slice(0, states.findIndex(({ id }) => id === base) + 1);
    expect(kept.length).toBeLessThan(states.length);
    const { saver, storage } = scene;
    const deltaFolds = deltaFoldsOf(scene.graph.channels);
    const retention = new CheckpointRetention({ storage, serde: saver.serde, deltaFolds });
    expect(await retention.pruneBefore("t", base)).toEqual({ ok: true, value: null });
    expect(await statesOf(scene)).toEqual(kept);
    expect(kept[0]!.texts).toEqual(["old", "saw 1", "kept", "saw 3", "newest", "saw 5"]);
    const rows = storage.sql.exec<{ n: number }>("SELECT count(DISTINCT checkpoint_id) AS n FROM checkpoint_writes");
    expect(rows.one().n).toBeLessThanOrEqual(kept.length);
  });
});

it("a child's first checkpoint stands behind the one its parent had, though the clock is behind it", async () => {
  await inScene(async ({ storage, saver }) => {
    const root = await putCheckpoint(saver, threadConfig());
    setClock(-HOUR_MS);
    const child = await putCheckpoint(saver, threadConfig("t", "tools:1"));
    const nested = await putCheckpoint(saver, threadConfig("t", "tools:1|inner:2"));
    const positions = findHeads(storage.sql, "t").map(({ checkpointId, position }) => ({ checkpointId, position }));
    expect(positions.map(({ checkpointId }) => checkpointId)).toEqual([root, child, nested].map(idOf));
    expect(positions.map(({ position }) => position).toSorted()).toEqual(positions.map(({ position }) => position));
    storage.transactionSync(() => deleteNewerRows(storage.sql, "t", idOf(root)));
    expect(findHeads(storage.sql, "t").map(({ checkpointId }) => checkpointId)).toEqual([idOf(root)]);
  });
});

it("an ordinary clock stores no position, and no namespace is walked to find its newest", async () => {
  await inScene(async (scene) => {
    for (let run = 0; run < 5; run += 1) await scene.graph.invoke(human(`question ${run}`), config);
    expect(lateRows(scene.storage)).toBe(0);
    const [row] = scene.storage.sql.exec("SELECT count(*) AS n FROM checkpoints").toArray();
    expect(row!["n"]).toBeGreaterThan(10);
    let rowsRead = 0;
    const counting = {
      exec: (query: string, ...bindings: unknown[]) => {
        const cursor = scene.storage.sql.exec(query, ...bindings);
        const rows = cursor.toArray();
        rowsRead += cursor.rowsRead;
        return { toArray: () => rows } as never;
      },
    };
    new DurableCheckpointSaver({ storage: scene.storage, sql: counting as never }).headId("t");
    expect(rowsRead).toBeLessThanOrEqual(4);
  });
});
