/**
 * From rows to what LangGraph reads: a checkpoint tuple, a delta channel's history.
 *
 * Each function first takes everything it needs from the storage without an await, so that it sees one moment, and
 * then deserialises.
 */
import {
  type Checkpoint,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type DeltaChannelHistory,
  maxChannelVersion,
  type SerializerProtocol,
  TASKS,
} from "@langchain/langgraph-checkpoint";
import { type ChainLink, walkAncestors } from "./checkpoint-chain.ts";
import { type CheckpointDocument, loadMetadata, unpackCheckpoint } from "./checkpoint-document.ts";
import type { CheckpointKey } from "./checkpoint-key.ts";
import { type CheckpointRow, findWrites } from "./checkpoint-rows.ts";
import { findValues, gatherValues, type ValueWanted } from "./checkpoint-values.ts";
import { loadWrites, type OrderedWrite, orderWrites } from "./checkpoint-writes.ts";
import type { SqlExecutor } from "./metered-sql.ts";
import { loadValue, type StoredValue } from "./stored-value.ts";

/** Before this format, `Send`s of a step were kept as its parent's writes only. */
const SENDS_IN_CHANNEL_VERSION = 4;

export function configOf(threadId: string, checkpointNs: string, checkpointId: string) {
  return { configurable: { thread_id: threadId, checkpoint_ns: checkpointNs, checkpoint_id: checkpointId } };
}

export async function readTuple(
  { sql, serde }: { sql: SqlExecutor; serde: SerializerProtocol },
  row: CheckpointRow,
): Promise<CheckpointTuple> {
  const document = unpackCheckpoint(row.body);
  const values = gatherValues(sql, row, document);
  const writes = orderWrites(findWrites(sql, row));
  const parent = row.parentId === null ? undefined : { ...row, checkpointId: row.parentId };
  const old = document.checkpoint.v < SENDS_IN_CHANNEL_VERSION && parent !== undefined;
  const sends = old ? orderWrites(findWrites(sql, parent)).filter((write) => write.channel === TASKS) : undefined;

  const checkpoint = await loadCheckpoint(serde, document, values);
  if (sends !== undefined) await restoreSends(serde, checkpoint, sends);
  const tuple: CheckpointTuple = {
    config: configOf(row.threadId, row.checkpointNs, row.checkpointId),
    checkpoint,
    metadata: await loadMetadata(serde, document),
    pendingWrites: await loadWrites(serde, writes),
  };
  if (parent !== undefined) tuple.parentConfig = configOf(row.threadId, row.checkpointNs, parent.checkpointId);
  return tuple;
}

/** Per channel: the nearest ancestor's value as seed, and all writes from that ancestor on, oldest first. */
export async function readDeltaHistory(
  { sql, serde }: { sql: SqlExecutor; serde: SerializerProtocol },
  key: CheckpointKey,
  channels: readonly string[],
): Promise<Record<string, DeltaChannelHistory>> {
  const links = walkAncestors(sql, key, channels);
  const wanted = channels.flatMap((channel) => nearestHolder(links, channel) ?? []);
  const seeds = findValues(sql, key, wanted);
  const histories = channels.map(async (channel) => {
    const seed = seeds.get(channel);
    const writes = await loadWrites(serde, writesSince(links, channel));
    const history: DeltaChannelHistory =
      seed === undefined ? { writes } : { writes, seed: await loadValue(serde, seed) };
    return [channel, history] as const;
  });
  return Object.fromEntries(await Promise.all(histories));
}

function nearestHolder(links: readonly ChainLink[], channel: string): ValueWanted | undefined {
  const link = links.find(({ holders }) => Object.hasOwn(holders, channel));
  if (link === undefined) return undefined;
  return { channel, carrierId: link.checkpointId, holderId: link.holders[channel]![1] ?? link.checkpointId };
}

function writesSince(links: readonly ChainLink[], channel: string): OrderedWrite[] {
  const last = links.findIndex(({ holders }) => Object.hasOwn(holders, channel));
  const onPath = last === -1 ? links : links.slice(0, last + 1);
  return onPath.toReversed().flatMap((link) => orderWrites(link.writes).filter((write) => write.channel === channel));
}

async function loadCheckpoint(
  serde: SerializerProtocol,
  document: CheckpointDocument,
  values: ReadonlyMap<string, StoredValue>,
): Promise<Checkpoint> {
  const entries = [...values].map(async ([channel, value]) => [channel, await loadValue(serde, value)] as const);
  return { ...document.checkpoint, channel_values: Object.fromEntries(await Promise.all(entries)) };
}

async function restoreSends(
  serde: SerializerProtocol,
  checkpoint: Checkpoint,
  sends: readonly OrderedWrite[],
): Promise<void> {
  const pending: CheckpointPendingWrite[] = await loadWrites(serde, sends);
  checkpoint.channel_values[TASKS] = pending.map(([, , send]) => send);
  const versions = Object.values(checkpoint.channel_versions);
  checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : 1;
}
