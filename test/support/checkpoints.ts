/** Checkpoints as a graph would put them, for tests that speak to a saver without one. */
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type BaseCheckpointSaver,
  type ChannelVersions,
  type CheckpointMetadata,
  emptyCheckpoint,
  uuid6,
} from "@langchain/langgraph-checkpoint";

const LOOP: CheckpointMetadata = { source: "loop", step: 0, parents: {} };

export function threadConfig(threadId = "t", checkpointNs = ""): RunnableConfig {
  return { configurable: { thread_id: threadId, checkpoint_ns: checkpointNs } };
}

export interface PutShape {
  readonly values?: Record<string, unknown>;
  readonly versions?: ChannelVersions;
  /** The channels of `versions` that changed; all of them when left out. */
  readonly changed?: readonly string[];
  readonly metadata?: CheckpointMetadata;
}

/** Puts one checkpoint under `parent`; its config addresses it. */
export function putCheckpoint(
  saver: BaseCheckpointSaver,
  parent: RunnableConfig,
  { values = {}, versions = {}, changed = Object.keys(versions), metadata = LOOP }: PutShape = {},
): Promise<RunnableConfig> {
  const checkpoint = { ...emptyCheckpoint(), id: uuid6(0), channel_values: values, channel_versions: versions };
  const newVersions = Object.fromEntries(changed.map((channel) => [channel, versions[channel]!]));
  return saver.put(parent, checkpoint, metadata, newVersions);
}

export function idOf(config: RunnableConfig): string {
  return config.configurable!["checkpoint_id"] as string;
}
