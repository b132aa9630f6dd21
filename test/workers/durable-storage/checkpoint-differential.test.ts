/**
 * The durable saver against LangGraph's `MemorySaver`, which stores every checkpoint whole: generated histories with
 * branches, carried, changed and emptied channels, repeated and special writes read the same from both.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type BaseCheckpointSaver,
  type ChannelVersions,
  type CheckpointTuple,
  emptyCheckpoint,
  MemorySaver,
  uuid6,
} from "@langchain/langgraph-checkpoint";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { DurableCheckpointSaver } from "../../../src/platform/durable-storage/checkpoint-saver.ts";
import { idOf, threadConfig } from "../../support/checkpoints.ts";
import { inFreshObject } from "../../support/object-storage.ts";

const HISTORIES = 60;
const CHANNELS = ["a", "b", "c"] as const;
const channel = fc.constantFrom(...CHANNELS);
const value = fc.oneof(fc.integer(), fc.string({ unit: "binary" }), fc.constant(null), fc.array(fc.integer()));
const change = fc.record({ channel, value: fc.option(value, { nil: undefined }) });
const put = fc.record({ kind: fc.constant("put" as const), parent: fc.nat(), changes: fc.array(change) });
const write = fc.tuple(fc.oneof(channel, fc.constantFrom("__error__", "__interrupt__", "__resume__")), value);
const putWrites = fc.record({
  kind: fc.constant("writes" as const),
  target: fc.nat(),
  task: fc.constantFrom("task-1", "task-2", "task-3"),
  path: fc.constantFrom("", "~0000000001", "~0000000000", "~😀", "~\uffff"),
  writes: fc.array(write, { minLength: 1, maxLength: 4 }),
});
const operation = fc.oneof(put, putWrites);

type Generated<A> = A extends fc.Arbitrary<infer T> ? T : never;

interface Known {
  readonly config: RunnableConfig;
  readonly values: Record<string, unknown>;
  readonly versions: ChannelVersions;
}

/** Replays the operations on both savers and answers every checkpoint's config. */
async function replay(savers: BaseCheckpointSaver[], operations: readonly Generated<typeof operation>[]) {
  const known: Known[] = [];
  for (const op of operations) {
    if (op.kind === "writes") {
      const target = known[op.target % known.length];
      if (target === undefined) continue;
      for (const saver of savers) await saver.putWrites(target.config, op.writes, op.task, op.path);
      continue;
    }
    // One in five starts a chain of its own.
    const parent = op.parent % 5 === 0 ? undefined : known[op.parent % known.length];
    known.push(await putOnAll(savers, parent, op.changes));
  }
  return known.map(({ config }) => config);
}

async function putOnAll(
  savers: BaseCheckpointSaver[],
  parent: Known | undefined,
  changes: readonly Generated<typeof change>[],
): Promise<Known> {
  const values = { ...parent?.values };
  const versions = { ...parent?.versions };
  const newVersions: ChannelVersions = {};
  for (const { channel, value } of changes) {
    versions[channel] = newVersions[channel] = Number(parent?.versions[channel] ?? 0) + 1;
    if (value === undefined) delete values[channel];
    else values[channel] = value;
  }
  const checkpoint = { ...emptyCheckpoint(), id: uuid6(0), channel_values: values, channel_versions: versions };
  const metadata = { source: "loop" as const, step: changes.length, parents: {} };
  const puts = savers.map((saver) => saver.put(parent?.config ?? threadConfig(), checkpoint, metadata, newVersions));
  // All of them: what is read next must be there in each.
  const [config] = await Promise.all(puts);
  return { config: config!, values, versions };
}

async function listed(saver: BaseCheckpointSaver, options: Parameters<BaseCheckpointSaver["list"]>[1]) {
  const tuples: CheckpointTuple[] = [];
  for await (const tuple of saver.list(threadConfig(), options)) tuples.push(tuple);
  return tuples;
}

it("any history reads from the durable saver as from LangGraph's own in-memory one", async () => {
  await inFreshObject(async (storage) => {
    let checkpoints = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 30 }), fc.nat(), async (operations, pick) => {
        const memory = new MemorySaver();
        const durable = new DurableCheckpointSaver({ storage });
        await durable.deleteThread("t");
        const configs = await replay([memory, durable], operations);
        checkpoints += configs.length;
        for (const config of configs) {
          expect(await durable.getTuple(config)).toEqual(await memory.getTuple(config));
          const asked = { config, channels: [...CHANNELS] };
          expect(await durable.getDeltaChannelHistory(asked)).toEqual(await memory.getDeltaChannelHistory(asked));
        }
        if (configs.length === 0) return;
        const before = configs[pick % configs.length]!;
        for (const options of [{}, { limit: 2 }, { before }, { filter: { step: 1 }, limit: 1 }]) {
          expect(await listed(durable, options)).toEqual(await listed(memory, options));
        }
        const head = await durable.getTuple(threadConfig());
        expect(head?.checkpoint.id).toBe(configs.map(idOf).toSorted().at(-1));
      }),
      { numRuns: HISTORIES },
    );
    expect(checkpoints).toBeGreaterThan(HISTORIES);
  });
});
