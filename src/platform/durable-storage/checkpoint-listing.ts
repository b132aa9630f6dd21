/** Which checkpoints a `list` call names, the ones put last first, as keys only: bodies are read one by one while it is consumed. */
import type { CheckpointKey } from "./checkpoint-key.ts";
import { POSITION } from "./checkpoint-order.ts";
import type { SqlExecutor } from "./metered-sql.ts";

export interface CheckpointSelection {
  readonly threadId?: string | undefined;
  readonly checkpointNs?: string | undefined;
  readonly checkpointId?: string | undefined;
  /** Only what was put before this one. */
  readonly beforeId?: string | undefined;
  readonly limit?: number | undefined;
}

type StoredKey = { thread_id: string; checkpoint_ns: string; checkpoint_id: string };

const CONDITIONS = [
  ["threadId", "thread_id = ?"],
  ["checkpointNs", "checkpoint_ns = ?"],
  ["checkpointId", "checkpoint_id = ?"],
  [
    "beforeId",
    `${POSITION} < (SELECT coalesce(max(late_position), named.id) FROM (SELECT ? AS id) AS named
      LEFT JOIN checkpoints AS late ON late.checkpoint_id = named.id AND late.late_position IS NOT NULL)`,
  ],
] as const;

export function selectKeys(sql: SqlExecutor, selection: CheckpointSelection): CheckpointKey[] {
  const chosen = CONDITIONS.filter(([field]) => selection[field] !== undefined);
  const where = chosen.length === 0 ? "" : `WHERE ${chosen.map(([, condition]) => condition).join(" AND ")}`;
  // A negative LIMIT means none to SQLite; a caller's negative limit means nothing.
  const limit = selection.limit === undefined ? -1 : Math.max(0, selection.limit);
  const query = `SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints ${where}
    ORDER BY thread_id, checkpoint_ns, ${POSITION} DESC LIMIT ?`;
  const rows = sql.exec<StoredKey>(query, ...chosen.map(([field]) => selection[field]), limit).toArray();
  return rows.map((row) => ({
    threadId: row.thread_id,
    checkpointNs: row.checkpoint_ns,
    checkpointId: row.checkpoint_id,
  }));
}

/** All but the thread's own. */
export function selectChildNamespaces(sql: SqlExecutor, threadId: string): string[] {
  const query = "SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE thread_id = ? AND checkpoint_ns > ''";
  const rows = sql.exec<Pick<StoredKey, "checkpoint_ns">>(query, threadId).toArray();
  return rows.map((row) => row.checkpoint_ns);
}
