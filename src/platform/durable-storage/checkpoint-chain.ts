/**
 * Walks along `parent_id`: what a delta channel is rebuilt from, and where a pruned chain now begins.
 *
 * Owns two recursive queries, one statement each however long the chain is. Reads only. Only on-path ancestors count,
 * so an abandoned branch contributes nothing.
 */
import { type CheckpointKey, keyColumns } from "./checkpoint-key.ts";
import { parseHolders, toWrites, type ValueHolders, type WritesRow } from "./checkpoint-rows.ts";
import type { SqlExecutor } from "./metered-sql.ts";

/** One ancestor: what it carries, and the writes stored under it. */
export interface ChainLink {
  readonly checkpointId: string;
  readonly holders: ValueHolders;
  readonly writes: WritesRow[];
}

type StoredLink = {
  checkpoint_id: string;
  value_holders: string;
  task_id: string | null;
  chunks: number | null;
  body: ArrayBuffer | null;
};

// `missing`: the channels that no row nearer to the target carries. The walk ends when none is missing, or at the root.
const ANCESTORS = `
  WITH RECURSIVE chain(checkpoint_id, parent_id, value_holders, missing, depth) AS (
    SELECT checkpoint_id, parent_id, value_holders, ?4, 0
    FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = (
      SELECT parent_id FROM checkpoints WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3)
    UNION ALL
    SELECT next.checkpoint_id, next.parent_id, next.value_holders,
      (SELECT json_group_array(value) FROM json_each(chain.missing)
        WHERE value NOT IN (SELECT key FROM json_each(chain.value_holders))),
      chain.depth + 1
    FROM chain JOIN checkpoints AS next
      ON next.thread_id = ?1 AND next.checkpoint_ns = ?2 AND next.checkpoint_id = chain.parent_id
    WHERE EXISTS (SELECT 1 FROM json_each(chain.missing)
      WHERE value NOT IN (SELECT key FROM json_each(chain.value_holders)))
  )
  SELECT chain.checkpoint_id, chain.value_holders, w.task_id, w.chunks, w.body
  FROM chain LEFT JOIN checkpoint_writes AS w
    ON w.thread_id = ?1 AND w.checkpoint_ns = ?2 AND w.checkpoint_id = chain.checkpoint_id
  ORDER BY chain.depth`;

const OLDEST = `
  WITH RECURSIVE chain(checkpoint_id, parent_id, depth) AS (
    SELECT checkpoint_id, parent_id, 0 FROM checkpoints
    WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3
    UNION ALL
    SELECT next.checkpoint_id, next.parent_id, chain.depth + 1
    FROM chain JOIN checkpoints AS next
      ON next.thread_id = ?1 AND next.checkpoint_ns = ?2 AND next.checkpoint_id = chain.parent_id
  )
  SELECT checkpoint_id FROM chain ORDER BY depth DESC LIMIT 1`;

/**
 * The ancestors of `key`, nearest first and without `key` itself, as far as some of `channels` is still missing: the
 * last link carries the last of them, or is the root.
 */
export function walkAncestors(sql: SqlExecutor, key: CheckpointKey, channels: readonly string[]): ChainLink[] {
  const links: ChainLink[] = [];
  for (const row of sql.exec<StoredLink>(ANCESTORS, ...keyColumns(key), JSON.stringify(channels)).toArray()) {
    const checkpointId = row.checkpoint_id;
    let link = links.at(-1);
    if (link?.checkpointId !== checkpointId) {
      link = { checkpointId, holders: parseHolders(row.value_holders), writes: [] };
      links.push(link);
    }
    const { task_id, chunks, body } = row;
    if (task_id === null || chunks === null || body === null) continue;
    link.writes.push(toWrites(sql, { ...key, checkpointId }, { task_id, chunks, body }));
  }
  return links;
}

/** The far end of the stored parent chain: `key` itself when it has no stored parent. */
export function findOldestAncestor(sql: SqlExecutor, key: CheckpointKey): string | undefined {
  return sql.exec<{ checkpoint_id: string }>(OLDEST, ...keyColumns(key)).toArray()[0]?.checkpoint_id;
}
