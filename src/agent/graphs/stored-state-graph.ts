/**
 * Stands where a graph would that cannot be had: it is served no more, or its factory fails. Owns the answer of such a
 * thread: a run fails with the reason that was given, its state is read as it was stored, and it cannot be edited.
 *
 * Without the graph nobody knows what comes next or how a channel kept as deltas is put together: `next` is empty and such
 * a channel is left out. Questions that wait for an answer are still shown.
 */
import type { BaseCheckpointSaver, CheckpointTuple, StateSnapshot } from "@langchain/langgraph";
import type { RunnableGraph } from "../graph-catalog.ts";

const INTERRUPTS_CHANNEL = "__interrupt__";

/** Channels by which LangGraph starts nodes; no part of the state. */
const CONTROL_CHANNEL = /^(__|branch:)/;

/** LangGraph's name for an edit that the state does not take; whoever edits tells the client so. */
class StateNotEditableError extends Error {
  override readonly name = "InvalidUpdateError";
}

export function storedStateGraph(saver: BaseCheckpointSaver, why: Error): RunnableGraph {
  return {
    channels: {},
    stream: () => Promise.reject(why),
    // oxlint-disable-next-line require-yield -- a run of it has no event before its failure
    async *streamEvents() {
      throw why;
    },
    async getState(config) {
      const saved = await saver.getTuple(config);
      return saved === undefined ? { values: {}, next: [], config, tasks: [] } : toSnapshot(saved);
    },
    async *getStateHistory(config, options) {
      for await (const saved of saver.list(config, options)) yield toSnapshot(saved);
    },
    updateState: () => Promise.reject(new StateNotEditableError(`the state cannot be edited: ${why.message}`)),
  };
}

function toSnapshot({ checkpoint, config, metadata, parentConfig, pendingWrites }: CheckpointTuple): StateSnapshot {
  const values = Object.entries(checkpoint.channel_values).filter(([channel]) => !CONTROL_CHANNEL.test(channel));
  const asked = (pendingWrites ?? []).filter(([, channel]) => channel === INTERRUPTS_CHANNEL);
  return {
    values: Object.fromEntries(values),
    next: [],
    config,
    ...(metadata === undefined ? {} : { metadata }),
    createdAt: checkpoint.ts,
    ...(parentConfig === undefined ? {} : { parentConfig }),
    tasks: asked.map(([id, , interrupts]) => ({
      id,
      name: "",
      interrupts: (Array.isArray(interrupts)
        ? interrupts
        : [interrupts]) as StateSnapshot["tasks"][number]["interrupts"],
    })),
  };
}
