import { AIMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { DurableCheckpointSaver } from "../../../src/platform/durable-storage/checkpoint-saver.ts";
import type { CheckpointCommit, CommitHook, WritesCommit } from "../../../src/platform/durable-storage/commit-hook.ts";
import { ensureSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { idOf, putCheckpoint, threadConfig } from "../../support/checkpoints.ts";
import { inFreshObject } from "../../support/object-storage.ts";

class RecordingHook implements CommitHook {
  readonly writes: WritesCommit[] = [];
  readonly checkpoints: CheckpointCommit[] = [];

  onWrites(commit: WritesCommit): void {
    this.writes.push(commit);
  }

  onCheckpoint(commit: CheckpointCommit): void {
    this.checkpoints.push(commit);
  }
}

/** A hook that keeps a row of its own per commit, and fails when told to. */
class OutboxHook implements CommitHook {
  readonly #sql: SqlStorage;
  failure: Error | undefined;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec("CREATE TABLE test_outbox (text TEXT)");
  }

  onWrites({ taskId }: WritesCommit): void {
    this.#add(taskId);
  }

  onCheckpoint({ source }: CheckpointCommit): void {
    this.#add(source);
  }

  read(): string[] {
    return this.#sql
      .exec<{ text: string }>("SELECT text FROM test_outbox ORDER BY rowid")
      .toArray()
      .map((row) => row.text);
  }

  #add(text: string): void {
    this.#sql.exec("INSERT INTO test_outbox VALUES (?)", text);
    if (this.failure !== undefined) throw this.failure;
  }
}

describe("commit hook", () => {
  it("P1 what fails in the hook takes the checkpoint's rows with it, and the other way round", async () => {
    await inFreshObject(async (storage) => {
      ensureSchema(storage);
      const hook = new OutboxHook(storage.sql);
      const saver = new DurableCheckpointSaver({ storage, hook });
      const config = await putCheckpoint(saver, threadConfig(), { values: { a: 1 }, versions: { a: 1 } });
      await saver.putWrites(config, [["a", 2]], "committed");
      hook.failure = new Error("the outbox is full");
      await expect(putCheckpoint(saver, config, { values: { a: 2 }, versions: { a: 2 } })).rejects.toThrow(
        hook.failure,
      );
      await expect(saver.putWrites(config, [["a", 3]], "refused")).rejects.toThrow(hook.failure);
      await expect(saver.putWrites(config, [["__resume__", "x"]], "committed")).rejects.toThrow(hook.failure);

      expect(hook.read()).toEqual(["loop", "committed"]);
      const head = await saver.getTuple(threadConfig());
      expect(head?.checkpoint.id).toBe(idOf(config));
      expect(head?.pendingWrites).toEqual([["committed", "a", 2]]);
    });
  });

  it("onWrites sees the live values, not copies of them, with where they belong", async () => {
    await inFreshObject(async (storage) => {
      const hook = new RecordingHook();
      const saver = new DurableCheckpointSaver({ storage, hook });
      const message = new AIMessage({ id: "m1", content: "hello" });
      const config = await putCheckpoint(saver, threadConfig("t", "tools:1"));
      await saver.putWrites(config, [["messages", message]], "task", "~path");
      expect(hook.checkpoints).toEqual([
        { checkpointNs: "tools:1", checkpointId: idOf(config), source: "loop", step: 0 },
      ]);
      expect(hook.writes).toHaveLength(1);
      expect(hook.writes[0]).toMatchObject({ checkpointNs: "tools:1", taskId: "task", taskPath: "~path" });
      expect(hook.writes[0]?.writes[0]?.[1]).toBe(message);
    });
  });

  it("P2 a repeated call reaches the hook with what is new only, so no event is derived twice", async () => {
    await inFreshObject(async (storage) => {
      const hook = new RecordingHook();
      const saver = new DurableCheckpointSaver({ storage, hook });
      const config = await putCheckpoint(saver, threadConfig());
      await saver.putWrites(config, [["m", 1]], "task");
      await saver.putWrites(config, [["m", 1]], "task");
      await saver.putWrites(
        config,
        [
          ["m", 1],
          ["n", 2],
        ],
        "task",
      );
      expect(hook.writes.map((commit) => commit.writes)).toEqual([[["m", 1]], [["n", 2]]]);
    });
  });

  it("a value that cannot be serialised fails the call, where LangGraph's serializer would store a placeholder", async () => {
    await inFreshObject(async (storage) => {
      const hook = new RecordingHook();
      const saver = new DurableCheckpointSaver({ storage, hook });
      const config = await putCheckpoint(saver, threadConfig());
      const lost: [string, unknown][] = [
        ["a", 1],
        ["m", { bigint: 1n }],
      ];
      await expect(saver.putWrites(config, lost, "task")).rejects.toThrow("cannot be serialised");
      const put = putCheckpoint(saver, config, { values: { a: 1n }, versions: { a: 1 } });
      await expect(put).rejects.toThrow("cannot be serialised");
      expect(hook.writes).toEqual([]);
      expect((await saver.getTuple(config))?.pendingWrites).toEqual([]);
    });
  });

  it("a small write does not wait for a large one that started before it", async () => {
    await inFreshObject(async (storage) => {
      const hook = new RecordingHook();
      const saver = new DurableCheckpointSaver({ storage, hook });
      const config = await putCheckpoint(saver, threadConfig());
      let release = () => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      const dumpsTyped = saver.serde.dumpsTyped.bind(saver.serde);
      saver.serde.dumpsTyped = async (value) => {
        if (value === "slow") await held;
        return dumpsTyped(value);
      };
      const slow = saver.putWrites(config, [["m", "slow"]], "slow");
      await saver.putWrites(config, [["m", "fast"]], "fast");
      expect(hook.writes.map((commit) => commit.taskId)).toEqual(["fast"]);
      release();
      await slow;
      expect(hook.writes.map((commit) => commit.taskId)).toEqual(["fast", "slow"]);
      expect((await saver.getTuple(config))?.pendingWrites).toHaveLength(2);
    });
  });
});
