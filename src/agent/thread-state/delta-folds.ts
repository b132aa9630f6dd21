/**
 * The value of a graph's delta channels out of their stored history, computed by the channels themselves.
 * For whoever shortens that history (checkpoint retention) and must not know reducers.
 */
import type { DeltaChannelHistory } from "@langchain/langgraph-checkpoint";
import { DeltaChannel } from "@langchain/langgraph";
import { threadStateChannels } from "./channels.ts";

export type DeltaFold = (history: DeltaChannelHistory) => unknown;

/** `channels` as a compiled graph has them. */
export function deltaFoldsOf(channels: Readonly<Record<string, unknown>>): Record<string, DeltaFold> {
  const deltas = Object.entries(channels).filter((entry): entry is [string, DeltaChannel] => {
    return entry[1] instanceof DeltaChannel;
  });
  return Object.fromEntries(deltas.map(([name, channel]) => [name, (history) => fold(channel, history)]));
}

function fold(channel: DeltaChannel, { seed, writes }: DeltaChannelHistory): unknown {
  const rebuilt = channel.fromCheckpoint(seed);
  rebuilt.replayWrites(writes);
  return rebuilt.get();
}

/** Those of ThreadState; a graph with channels of its own has its own (`deltaFoldsOf(graph.channels)`). */
export const DELTA_FOLDS: Readonly<Record<string, DeltaFold>> = deltaFoldsOf(
  Object.fromEntries(Object.entries(threadStateChannels()).map(([name, create]) => [name, create()])),
);
