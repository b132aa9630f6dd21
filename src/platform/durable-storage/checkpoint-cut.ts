/**
 * Cutting a namespace's history at a checkpoint: which rows then begin a chain, and what must be in them first.
 *
 * A row whose parent is cut off becomes a root. Before that, every value it carries by reference and the value of
 * every delta channel is written into it: a delta channel is rebuilt from its ancestors' writes, and with them gone it
 * would silently be empty.
 */
import { type CheckpointMetadata, DeltaSnapshot, type SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { DeltaFold } from "../../agent/thread-state/delta-folds.ts";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import { type CheckpointDocument, loadMetadata, packCheckpoint, unpackCheckpoint } from "./checkpoint-document.ts";
import type { CheckpointKey } from "./checkpoint-key.ts";
import { POSITION } from "./checkpoint-order.ts";
import { readDeltaHistory } from "./checkpoint-reader.ts";
import { type CheckpointRow, findCheckpoint, type ValueHolders } from "./checkpoint-rows.ts";
import { gatherValues } from "./checkpoint-values.ts";
import type { SqlExecutor } from "./metered-sql.ts";
import { storeValue } from "./stored-value.ts";

/** By name, for every delta channel of the thread's graph. */
export type DeltaFolds = Readonly<Record<string, DeltaFold>>;

/** The graph of `deltaFolds` does not know a delta channel of this checkpoint: cutting would lose its value. */
export interface UnknownDeltaChannel {
  readonly reason: "unknown_delta_channel";
  readonly channel: string;
}

export interface CutSource {
  readonly sql: SqlExecutor;
  readonly serde: SerializerProtocol;
  readonly deltaFolds: DeltaFolds;
}

/** Ids from the position `keepFrom` on whose parent is older: the roots after the cut. Empty when nothing is older. */
export function findNewRoots(sql: SqlExecutor, threadId: string, ns: string, keepFrom: string): string[] {
  const query = `SELECT checkpoint_id FROM checkpoints AS kept
    WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND ${POSITION} >= ?3 AND parent_id IS NOT NULL
      AND coalesce((SELECT late_position FROM checkpoints AS parent
        WHERE parent.thread_id = ?1 AND parent.checkpoint_ns = ?2 AND parent.checkpoint_id = kept.parent_id), parent_id) < ?3
    ORDER BY ${POSITION}`;
  const rows = sql.exec<{ checkpoint_id: string }>(query, threadId, ns, keepFrom).toArray();
  return rows.map((row) => row.checkpoint_id);
}

/** The row of `key` as a root: no parent, every value inline, a snapshot of each delta channel. Writes nothing. */
export async function toRootRow(
  source: CutSource,
  key: CheckpointKey,
): Promise<Result<CheckpointRow | undefined, UnknownDeltaChannel>> {
  const row = findCheckpoint(source.sql, key);
  if (row === undefined) return ok(undefined);
  const document = unpackCheckpoint(row.body);
  const values = gatherValues(source.sql, row, document);
  const deltas = deltaChannelsOf(await loadMetadata(source.serde, document), document, row.holders);
  const unknown = deltas.find((channel) => !Object.hasOwn(source.deltaFolds, channel));
  if (unknown !== undefined) return err({ reason: "unknown_delta_channel", channel: unknown });
  const histories = await readDeltaHistory(source, key, deltas);
  for (const channel of deltas) {
    const snapshot = new DeltaSnapshot(source.deltaFolds[channel]!(histories[channel]!));
    values.set(channel, await storeValue(source.serde, snapshot));
  }
  const holders: ValueHolders = {};
  for (const channel of values.keys()) holders[channel] = [document.checkpoint.channel_versions[channel]!];
  return ok({ ...row, parentId: null, holders, body: packCheckpoint({ ...document, values }) });
}

/** LangGraph counts, in each checkpoint's metadata, the steps since every delta channel's last snapshot. */
function deltaChannelsOf(metadata: CheckpointMetadata, document: CheckpointDocument, holders: ValueHolders): string[] {
  return Object.keys(metadata.counters_since_delta_snapshot ?? {}).filter((channel) => {
    return document.checkpoint.channel_versions[channel] !== undefined && !Object.hasOwn(holders, channel);
  });
}
