/**
 * A checkpointer for public suites that run outside of an object: each call is forwarded to a `DurableCheckpointSaver`
 * inside a fresh ThreadObject, made anew per call, so that nothing can hide in its memory.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type DeltaChannelHistory,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { env, runInDurableObject } from "cloudflare:test";
import { DurableCheckpointSaver } from "../../src/platform/durable-storage/checkpoint-saver.ts";

export class DurableSaverProxy extends BaseCheckpointSaver {
  readonly #object = env.THREADS.idFromName(crypto.randomUUID());

  override getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    return this.#inObject((saver) => saver.getTuple(config));
  }

  override async *list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple> {
    yield* await this.#inObject(async (saver) => {
      const tuples: CheckpointTuple[] = [];
      for await (const tuple of saver.list(config, options)) tuples.push(tuple);
      return tuples;
    });
  }

  override put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    return this.#inObject((saver) => saver.put(config, checkpoint, metadata, newVersions));
  }

  override putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath?: string): Promise<void> {
    return this.#inObject((saver) => saver.putWrites(config, writes, taskId, taskPath));
  }

  override deleteThread(threadId: string): Promise<void> {
    return this.#inObject((saver) => saver.deleteThread(threadId));
  }

  override getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    return this.#inObject((saver) => saver.getDeltaChannelHistory(options));
  }

  #inObject<T>(call: (saver: DurableCheckpointSaver) => Promise<T>): Promise<T> {
    const stub = env.THREADS.get(this.#object);
    return runInDurableObject(stub, (_instance, { storage }) => call(new DurableCheckpointSaver({ storage })));
  }
}
