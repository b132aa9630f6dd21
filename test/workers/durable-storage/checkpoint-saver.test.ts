import { DeltaSnapshot } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import { DurableCheckpointSaver } from "../../../src/platform/durable-storage/checkpoint-saver.ts";
import { MeteredSql } from "../../../src/platform/durable-storage/metered-sql.ts";
import { ensureSchema, hasSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { ROW_BYTES_MAX } from "../../../src/platform/durable-storage/row-chunks.ts";
import { idOf, putCheckpoint, threadConfig } from "../../support/checkpoints.ts";
import { inFreshObject } from "../../support/object-storage.ts";

const TABLES = ["checkpoints", "checkpoint_writes", "checkpoint_chunks"];

function countRows(storage: DurableObjectStorage, where = "1 = 1"): number[] {
  return TABLES.map((table) => {
    return storage.sql.exec<{ n: number }>(`SELECT count(*) AS n FROM ${table} WHERE ${where}`).one().n;
  });
}

function largestRow(storage: DurableObjectStorage): number {
  const sizes = TABLES.map((table) => {
    const columns = storage.sql.exec<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`).toArray();
    const bytes = columns.map(({ name }) => `coalesce(length(CAST(${name} AS BLOB)), 0)`).join(" + ");
    return storage.sql.exec<{ bytes: number | null }>(`SELECT max(${bytes}) AS bytes FROM ${table}`).one().bytes ?? 0;
  });
  return Math.max(...sizes);
}

function metered(storage: DurableObjectStorage): { saver: DurableCheckpointSaver; meter: MeteredSql } {
  ensureSchema(storage);
  const meter = new MeteredSql(storage.sql);
  return { saver: new DurableCheckpointSaver({ storage, sql: meter.labelled("checkpoints") }), meter };
}

describe("reads of an object that accepted nothing", () => {
  it("find nothing and leave no table behind", async () => {
    await inFreshObject(async (storage) => {
      const saver = new DurableCheckpointSaver({ storage });
      expect(await saver.getTuple(threadConfig())).toBeUndefined();
      for await (const tuple of saver.list({})) expect.unreachable(`listed ${tuple.checkpoint.id}`);
      const history = await saver.getDeltaChannelHistory({ config: threadConfig(), channels: ["messages"] });
      expect(history).toEqual({ messages: { writes: [] } });
      await saver.deleteThread("t");
      saver.deleteNamespace("t", "tools:x");
      expect(hasSchema(storage)).toBe(false);
    });
  });
});

describe("billed rows of the checkpointer", () => {
  it("three checkpoints and two tasks' writes are five rows", async () => {
    await inFreshObject(async (storage) => {
      const { saver, meter } = metered(storage);
      const c0 = await putCheckpoint(saver, threadConfig(), { values: { a: 1, b: 2 }, versions: { a: 1, b: 1 } });
      await saver.putWrites(
        c0,
        [
          ["a", 2],
          ["messages", ["hello"]],
          ["branch", null],
        ],
        "task-1",
        "~a",
      );
      const c1 = await putCheckpoint(saver, c0, { values: { a: 2, b: 2 }, versions: { a: 2, b: 1 }, changed: ["a"] });
      await saver.putWrites(c1, [["a", 3]], "task-2", "~a");
      await putCheckpoint(saver, c1, { values: { a: 3, b: 2 }, versions: { a: 3, b: 1 }, changed: ["a"] });
      expect(meter.totals().rowsWritten).toBe(5);
    });
  });

  it("a value that did not change is not stored again, however long it is carried", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      const big = "x".repeat(100_000);
      let config = await putCheckpoint(saver, threadConfig(), { values: { big }, versions: { big: 1 } });
      for (let n = 1; n <= 20; n += 1) {
        const versions = { big: 1, n };
        config = await putCheckpoint(saver, config, { values: { big, n }, versions, changed: ["n"] });
      }
      const { bytes } = storage.sql.exec<{ bytes: number }>("SELECT sum(length(body)) AS bytes FROM checkpoints").one();
      expect(bytes).toBeLessThan(115_000);
      expect((await saver.get(config))?.channel_values).toEqual({ big, n: 20 });
    });
  });

  it("reading the head takes the same few statements at any depth", async () => {
    await inFreshObject(async (storage) => {
      const { saver, meter } = metered(storage);
      let config = await putCheckpoint(saver, threadConfig(), { values: { a: 0, b: 0 }, versions: { a: 1, b: 1 } });
      for (let n = 2; n < 50; n += 1) {
        config = await putCheckpoint(saver, config, {
          values: { a: 0, b: n },
          versions: { a: 1, b: n },
          changed: ["b"],
        });
      }
      meter.reset();
      await saver.getTuple(threadConfig());
      expect(meter.totals()).toMatchObject({ statements: 4, rowsWritten: 0 });
      expect(meter.totals().rowsRead).toBeLessThan(10);
    });
  });
});

describe("values and rows larger than a row", () => {
  it("are split under our own bound, read back whole and deleted whole", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      const large = { text: "ä".repeat(2_200_000) };
      const config = await putCheckpoint(saver, threadConfig(), { values: { large }, versions: { large: 1 } });
      const child = await putCheckpoint(saver, config, { values: { large }, versions: { large: 1 }, changed: [] });
      await saver.putWrites(
        config,
        [
          ["large", large],
          ["small", 1],
        ],
        "task",
        "~p",
      );
      expect(largestRow(storage)).toBeLessThanOrEqual(ROW_BYTES_MAX);
      expect(countRows(storage)).toEqual([2, 1, 4]);
      const tuple = await saver.getTuple(config);
      expect(tuple?.checkpoint.channel_values).toEqual({ large });
      expect(tuple?.pendingWrites).toEqual([
        ["task", "large", large],
        ["task", "small", 1],
      ]);
      expect((await saver.get(child))?.channel_values).toEqual({ large });
      await saver.deleteThread("t");
      expect(countRows(storage)).toEqual([0, 0, 0]);
    });
  });

  it("a special write that shrinks leaves no chunk of the larger one behind", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      const config = await putCheckpoint(saver, threadConfig());
      await saver.putWrites(config, [["__resume__", "x".repeat(4_000_000)]], "task");
      expect(countRows(storage)[2]).toBe(2);
      await saver.putWrites(config, [["__resume__", "short"]], "task");
      expect(countRows(storage)[2]).toBe(0);
      expect((await saver.getTuple(config))?.pendingWrites).toEqual([["task", "__resume__", "short"]]);
    });
  });
});

describe("what comes back is what was put", () => {
  it("half of a surrogate pair survives in values, keys and metadata (SQLite text would make it U+FFFD)", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      const half = "cut \ud83d here \udc00";
      const metadata = { source: "loop" as const, step: 1, parents: {}, note: half };
      const config = await putCheckpoint(saver, threadConfig(), {
        values: { text: half, nested: { [half]: [half] } },
        versions: { text: 1, nested: 1 },
        metadata,
      });
      await saver.putWrites(config, [["text", half]], "task", half);
      const tuple = await saver.getTuple(config);
      expect(tuple?.checkpoint.channel_values).toEqual({ text: half, nested: { [half]: [half] } });
      expect(tuple?.metadata).toEqual(metadata);
      expect(tuple?.pendingWrites).toEqual([["task", "text", half]]);
    });
  });

  it("bytes, undefined and null values keep their kind", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      const values = { bytes: new Uint8Array([0, 255, 1]), nothing: undefined, none: null };
      const versions = { bytes: 1, nothing: 1, none: 1 };
      const config = await putCheckpoint(saver, threadConfig(), { values, versions });
      const read = (await saver.get(config))!.channel_values;
      expect(read).toEqual(values);
      expect(Object.keys(read).toSorted()).toEqual(["bytes", "none", "nothing"]);
      expect((read["bytes"] as Uint8Array).buffer.byteLength).toBe(3);
    });
  });

  it("a copy of a checkpoint keeps values that its new parent never had", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      const metadata = { source: "fork" as const, step: 1, parents: {} };
      const root = await putCheckpoint(saver, threadConfig(), { values: { a: 1 }, versions: { a: 1 } });
      const copied = { values: { a: 2, b: 3 }, versions: { a: 2, b: 1 }, changed: [], metadata };
      const underParent = await putCheckpoint(saver, root, copied);
      const ofRoot = await putCheckpoint(saver, threadConfig(), copied);
      expect((await saver.get(underParent))?.channel_values).toEqual({ a: 2, b: 3 });
      expect((await saver.get(ofRoot))?.channel_values).toEqual({ a: 2, b: 3 });
    });
  });

  it("two branches with the same version number each keep their own value", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      const root = await putCheckpoint(saver, threadConfig(), { values: { a: 0 }, versions: { a: 1 } });
      const branches = await Promise.all(
        ["left", "right"].map((a) => putCheckpoint(saver, root, { values: { a }, versions: { a: 2 } })),
      );
      const children = await Promise.all(
        branches.map((branch, n) => {
          const shape = { values: { a: ["left", "right"][n], n }, versions: { a: 2, n: 1 }, changed: ["n"] };
          return putCheckpoint(saver, branch, shape);
        }),
      );
      const read = await Promise.all(children.map(async (child) => (await saver.get(child))?.channel_values["a"]));
      expect(read).toEqual(["left", "right"]);
    });
  });
});

describe("writes of one checkpoint", () => {
  it("come back by task path, not by task id or time, so parallel results keep their order", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      const config = await putCheckpoint(saver, threadConfig());
      const tasks = [
        ["id-c", "~0000000000"],
        ["id-a", "~0000000002"],
        ["id-b", "~0000000001"],
      ] as const;
      await Promise.all(
        tasks.map(([id, path]) =>
          saver.putWrites(
            config,
            [
              ["m", id],
              ["n", 1],
            ],
            id,
            path,
          ),
        ),
      );
      await saver.putWrites(config, [["m", "input"]], "id-z");
      const tuple = await saver.getTuple(config);
      const order = tuple!.pendingWrites!.filter(([, channel]) => channel === "m").map(([, , value]) => value);
      expect(order).toEqual(["input", "id-c", "id-b", "id-a"]);
    });
  });

  it("P2 a second run of a committed task changes nothing; a special write takes the latest value", async () => {
    await inFreshObject(async (storage) => {
      const { saver, meter } = metered(storage);
      const config = await putCheckpoint(saver, threadConfig());
      await saver.putWrites(
        config,
        [
          ["m", "first"],
          ["__interrupt__", "ask 1"],
        ],
        "task",
        "~p",
      );
      meter.reset();
      await saver.putWrites(config, [["m", "second"]], "task", "~other");
      expect(meter.totals().rowsWritten).toBe(0);
      await saver.putWrites(
        config,
        [
          ["__interrupt__", "ask 2"],
          ["extra", 1],
        ],
        "task",
        "~p",
      );
      expect((await saver.getTuple(config))?.pendingWrites).toEqual([
        ["task", "__interrupt__", "ask 2"],
        ["task", "m", "first"],
        ["task", "extra", 1],
      ]);
      expect(countRows(storage)).toEqual([1, 1, 0]);
    });
  });

  it("two calls of one task that serialise at the same time both count", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      const config = await putCheckpoint(saver, threadConfig());
      await Promise.all([
        saver.putWrites(config, [["m", 1]], "task"),
        saver.putWrites(config, [["__resume__", [1]]], "task"),
        saver.putWrites(
          config,
          [
            ["m", 2],
            ["n", 3],
          ],
          "task",
        ),
        saver.putWrites(config, [["m", 4]], "other"),
      ]);
      const writes = (await saver.getTuple(config))!.pendingWrites!;
      expect(writes).toContainEqual(["task", "__resume__", [1]]);
      expect(writes).toContainEqual(["task", "n", 3]);
      expect(writes).toContainEqual(["other", "m", 4]);
      expect(writes.filter(([task, channel]) => task === "task" && channel === "m")).toHaveLength(1);
    });
  });
});

describe("history of a delta channel", () => {
  it("98 messages are rebuilt by at most three statements (the walk by parents takes 296)", async () => {
    await inFreshObject(async (storage) => {
      const { saver, meter } = metered(storage);
      const seed = new DeltaSnapshot(["start"]);
      let config = await putCheckpoint(saver, threadConfig(), {
        values: { messages: seed },
        versions: { messages: 1 },
      });
      for (let n = 0; n < 98; n += 1) {
        await saver.putWrites(
          config,
          [
            ["messages", [n]],
            ["other", n],
          ],
          `task-${n}`,
          "~model",
        );
        config = await putCheckpoint(saver, config, { versions: { messages: n + 2 } });
      }
      meter.reset();
      const history = await saver.getDeltaChannelHistory({ config, channels: ["messages"] });
      expect(history["messages"]?.seed).toEqual(seed);
      expect(history["messages"]?.writes.map(([, , value]) => value)).toEqual(
        Array.from({ length: 98 }, (_, n) => [n]),
      );
      // The third asks the schema's own table whether anything was ever stored.
      expect(meter.totals().statements).toBeLessThanOrEqual(2);
    });
  });

  it("the walk stops at the nearest snapshot, so an old thread costs no more than a young one", async () => {
    await inFreshObject(async (storage) => {
      const { saver, meter } = metered(storage);
      let config = threadConfig();
      for (let n = 0; n < 60; n += 1) {
        const values = n === 57 ? { messages: new DeltaSnapshot([57]) } : {};
        config = await putCheckpoint(saver, config, { values, versions: { messages: n + 1 } });
        await saver.putWrites(config, [["messages", [n]]], `task-${n}`);
      }
      meter.reset();
      const history = await saver.getDeltaChannelHistory({ config, channels: ["messages"] });
      expect(history["messages"]?.writes.map(([, , value]) => value)).toEqual([[57], [58]]);
      expect(meter.totals().rowsRead).toBeLessThan(30);
    });
  });

  it("each channel ends at its own nearest value, and an abandoned branch contributes nothing", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      const root = await putCheckpoint(saver, threadConfig(), {
        values: { a: ["a0"], b: ["b0"] },
        versions: { a: 1, b: 1 },
      });
      await saver.putWrites(
        root,
        [
          ["a", "a1"],
          ["b", "b1"],
        ],
        "task-0",
      );
      const middle = await putCheckpoint(saver, root, { values: { b: ["b0", "b1"] }, versions: { a: 2, b: 2 } });
      await saver.putWrites(
        middle,
        [
          ["a", "a2"],
          ["b", "b2"],
        ],
        "task-1",
      );
      const abandoned = await putCheckpoint(saver, middle, { versions: { a: 3, b: 3 } });
      await saver.putWrites(abandoned, [["a", "lost"]], "task-x");
      const head = await putCheckpoint(saver, middle, { versions: { a: 3, b: 3 } });
      await saver.putWrites(head, [["a", "pending"]], "task-2");
      const history = await saver.getDeltaChannelHistory({ config: head, channels: ["a", "b", "never"] });
      expect(history).toEqual({
        a: {
          seed: ["a0"],
          writes: [
            ["task-0", "a", "a1"],
            ["task-1", "a", "a2"],
          ],
        },
        b: { seed: ["b0", "b1"], writes: [["task-1", "b", "b2"]] },
        never: { writes: [] },
      });
    });
  });
});

describe("deleting", () => {
  it("a child's namespace goes with everything nested under it and nothing else", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      const spaces = ["", "tools:1", "tools:1|tools:9", "tools:1|tools:9|x", "tools:10", "tools:1}", "other"];
      for (const ns of spaces) {
        const config = await putCheckpoint(saver, threadConfig("t", ns), { values: { ns }, versions: { ns: 1 } });
        await saver.putWrites(config, [["m", "x".repeat(ns === "tools:1" ? 2_000_000 : 1)]], "task");
      }
      const foreign = await putCheckpoint(saver, threadConfig("u", "tools:1"));
      storage.transactionSync(() => saver.deleteNamespace("t", "tools:1"));
      const left = storage.sql.exec("SELECT checkpoint_ns FROM checkpoints WHERE thread_id = 't'").toArray();
      expect(left.map((row) => row["checkpoint_ns"])).toEqual(["", "other", "tools:10", "tools:1}"]);
      expect(countRows(storage, "checkpoint_ns = 'tools:1' AND thread_id = 't'")).toEqual([0, 0, 0]);
      expect(await saver.getTuple(foreign)).toBeDefined();
      expect(() => saver.deleteNamespace("t", "")).toThrow(/root namespace/);
    });
  });

  it("a rolled back caller keeps the child's rows", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      const child = await putCheckpoint(saver, threadConfig("t", "tools:1"));
      expect(() =>
        storage.transactionSync(() => {
          saver.deleteNamespace("t", "tools:1");
          throw new Error("the result did not commit");
        }),
      ).toThrow("the result did not commit");
      expect(await saver.getTuple(child)).toBeDefined();
    });
  });
});

describe("listing", () => {
  it("goes newest first and stops at the limit; a limit of zero or less is nothing", async () => {
    await inFreshObject(async (storage) => {
      const { saver } = metered(storage);
      let config = threadConfig();
      const ids: string[] = [];
      for (let step = 0; step < 5; step += 1) {
        config = await putCheckpoint(saver, config, { metadata: { source: "loop", step, parents: {} } });
        ids.unshift(idOf(config));
      }
      const list = async (options: Parameters<typeof saver.list>[1]) => {
        const found: string[] = [];
        for await (const tuple of saver.list(threadConfig(), options)) found.push(tuple.checkpoint.id);
        return found;
      };
      expect(await list({})).toEqual(ids);
      expect(await list({ limit: 2 })).toEqual(ids.slice(0, 2));
      expect(await list({ limit: 0 })).toEqual([]);
      expect(await list({ limit: -1 })).toEqual([]);
      expect(await list({ filter: { step: 1 }, limit: 3 })).toEqual([ids[3]]);
      expect(await list({ before: { configurable: { checkpoint_id: ids[2] } } })).toEqual(ids.slice(3));
    });
  });
});

describe("the head's id", () => {
  it("costs two reads however large the checkpoint's body is, and is the thread's own line's", async () => {
    await inFreshObject(async (storage) => {
      const { saver, meter } = metered(storage);
      expect(saver.headId("t")).toBeNull();
      const large = { values: { a: "x".repeat(3 * ROW_BYTES_MAX) }, versions: { a: 1 } };
      const head = await putCheckpoint(saver, threadConfig(), large);
      await putCheckpoint(saver, threadConfig("t", "tools:x"));
      meter.reset();
      expect(saver.headId("t")).toBe(idOf(head));
      expect(meter.byLabel()["checkpoints"]).toEqual({ statements: 2, rowsRead: 2, rowsWritten: 0 });
    });
  });
});
