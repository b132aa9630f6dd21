/**
 * From a checkpoint row to all its values, wherever they are held.
 *
 * Reads in one go, without an await. A holder that was pruned is replaced by the oldest stored ancestor: pruning leaves
 * every value of that row in it, and a value that is carried over did not change between the two.
 */
import { invariant } from "../../domain/shared/assert.ts";
import { findOldestAncestor } from "./checkpoint-chain.ts";
import { type CheckpointDocument, unpackCheckpoint } from "./checkpoint-document.ts";
import type { CheckpointKey } from "./checkpoint-key.ts";
import { type CheckpointRow, findCheckpoints, type ValueHolders } from "./checkpoint-rows.ts";
import type { SqlExecutor } from "./metered-sql.ts";
import type { StoredValue } from "./stored-value.ts";

/** A channel's value and the checkpoint that carries it, which the reading checkpoint is or descends from. */
export interface ValueWanted {
  readonly channel: string;
  readonly carrierId: string;
  readonly holderId: string;
}

/** Every value of `row`, by channel. */
export function gatherValues(
  sql: SqlExecutor,
  row: CheckpointRow,
  document: CheckpointDocument,
): Map<string, StoredValue> {
  const carried = wantedOf(row.checkpointId, row.holders).filter((wanted) => wanted.holderId !== row.checkpointId);
  return new Map([...document.values, ...findValues(sql, row, carried)]);
}

function wantedOf(carrierId: string, holders: ValueHolders): ValueWanted[] {
  return Object.entries(holders).map(([channel, [, holderId]]) => {
    return { channel, carrierId, holderId: holderId ?? carrierId };
  });
}

/** The values of several channels, in one statement unless a holder was pruned. */
export function findValues(
  sql: SqlExecutor,
  key: CheckpointKey,
  wanted: readonly ValueWanted[],
): Map<string, StoredValue> {
  const documents = loadDocuments(sql, key, [...new Set(wanted.map(({ holderId }) => holderId))]);
  const substitutes = new Map<string, CheckpointDocument | undefined>();
  const values = new Map<string, StoredValue>();
  for (const { channel, carrierId, holderId } of wanted) {
    let document = documents.get(holderId) ?? substitutes.get(carrierId);
    if (document === undefined) {
      document = loadOldest(sql, { ...key, checkpointId: carrierId });
      substitutes.set(carrierId, document);
    }
    const value = document?.values.get(channel);
    invariant(value !== undefined, `checkpoint ${carrierId} lost the value of channel ${channel}`);
    values.set(channel, value);
  }
  return values;
}

function loadOldest(sql: SqlExecutor, carrier: CheckpointKey): CheckpointDocument | undefined {
  const oldestId = findOldestAncestor(sql, carrier);
  return oldestId === undefined ? undefined : loadDocuments(sql, carrier, [oldestId]).get(oldestId);
}

function loadDocuments(sql: SqlExecutor, key: CheckpointKey, ids: readonly string[]): Map<string, CheckpointDocument> {
  const rows = findCheckpoints(sql, key, ids);
  return new Map([...rows].map(([id, row]) => [id, unpackCheckpoint(row.body)]));
}
