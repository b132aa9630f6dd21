/**
 * Which checkpoint of a namespace is the newest: the one that was put last, whatever the clock said.
 *
 * LangGraph's ids follow the clock, so they sort in the order of puts until the clock is set back. A checkpoint whose id
 * would then sort before what it follows gets a position: the newest position of the thread, counted on. An ordinary one has
 * none and costs no row for it (the index is partial); its id is its position. Positions compare as text, also across the
 * namespaces of a thread. Reads only.
 */
import { type CheckpointKey, keyColumns } from "./checkpoint-key.ts";
import { rowsOf, type SqlExecutor } from "./metered-sql.ts";
import type { SchemaStep } from "./schema-ladder.ts";

// PERSISTED: a change is a new step with another id.
export const CHECKPOINT_ORDER_SCHEMA: SchemaStep = {
  id: "checkpoint-order-1",
  statements: [
    "ALTER TABLE checkpoints ADD COLUMN late_position TEXT",
    `CREATE INDEX checkpoints_late ON checkpoints (thread_id, checkpoint_ns, late_position)
      WHERE late_position IS NOT NULL`,
  ],
};

/** SQL: where a row of `checkpoints` stands among the others. */
export const POSITION = "coalesce(late_position, checkpoint_id)";

/** PERSISTED: between the position that is counted on and the count. Sorts behind every character of an id. */
const COUNTED = "~";
const COUNT_DIGITS = 9;

export interface PlacedCheckpoint {
  readonly checkpointId: string;
  readonly position: string;
}

const GREATEST = `SELECT checkpoint_id AS id, ${POSITION} AS position FROM checkpoints
  WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id DESC LIMIT 1`;
const LATEST = `SELECT checkpoint_id AS id, late_position AS position FROM checkpoints
  WHERE thread_id = ? AND checkpoint_ns = ? AND late_position IS NOT NULL ORDER BY late_position DESC LIMIT 1`;

/** Two look-ups by index instead of a walk over the namespace, which holds the steps of many runs. */
export function findNewest(sql: SqlExecutor, threadId: string, checkpointNs: string): PlacedCheckpoint | undefined {
  const [greatest] = rowsOf<{ id: string; position: string }>(sql, GREATEST, threadId, checkpointNs);
  if (greatest === undefined) return undefined;
  const late = findLateBehind(sql, { threadId, checkpointNs }, greatest.position);
  return late ?? { checkpointId: greatest.id, position: greatest.position };
}

/** The newest of the late ones, when it stands behind `position`, which is that of the greatest id. */
export function findLateBehind(
  sql: SqlExecutor,
  { threadId, checkpointNs }: Omit<CheckpointKey, "checkpointId">,
  position: string,
): PlacedCheckpoint | undefined {
  const [late] = rowsOf<{ id: string; position: string }>(sql, LATEST, threadId, checkpointNs);
  return late !== undefined && late.position > position
    ? { checkpointId: late.id, position: late.position }
    : undefined;
}

/** The newest of each namespace, the root's first. */
export function findHeads(sql: SqlExecutor, threadId: string): (PlacedCheckpoint & { checkpointNs: string })[] {
  const root = findNewest(sql, threadId, "");
  // SQLite: beside a lone max() the other columns are of its row.
  const nested = sql.exec<{ ns: string; id: string; position: string }>(
    `SELECT checkpoint_ns AS ns, checkpoint_id AS id, max(${POSITION}) AS position FROM checkpoints
     WHERE thread_id = ? AND checkpoint_ns > '' GROUP BY checkpoint_ns`,
    threadId,
  );
  return [
    ...(root === undefined ? [] : [{ checkpointNs: "", ...root }]),
    ...nested.toArray().map(({ ns, id, position }) => ({ checkpointNs: ns, checkpointId: id, position })),
  ];
}

/** Of several namespaces' heads the one that was put last. */
export function newestOf(heads: readonly PlacedCheckpoint[]): PlacedCheckpoint | undefined {
  return heads.toSorted((a, b) => (a.position < b.position ? 1 : -1))[0];
}

/** Of several checkpoints, in their order, as `positionOf`. One statement, which finds nothing while no clock was set back. */
export function positionsOf(sql: SqlExecutor, threadId: string, checkpointIds: readonly string[]): string[] {
  const query = `SELECT checkpoint_id AS id, late_position AS position FROM checkpoints
    WHERE thread_id = ? AND late_position IS NOT NULL AND checkpoint_id IN (SELECT value FROM json_each(?))`;
  const late = sql.exec<{ id: string; position: string }>(query, threadId, JSON.stringify(checkpointIds)).toArray();
  const positions = new Map(late.map(({ id, position }) => [id, position]));
  return checkpointIds.map((id) => positions.get(id) ?? id);
}

/** Of a checkpoint in whichever namespace; its id where it is gone. */
export function positionOf(sql: SqlExecutor, threadId: string, checkpointId: string): string {
  const query = `SELECT late_position AS position FROM checkpoints
    WHERE thread_id = ? AND checkpoint_id = ? AND late_position IS NOT NULL LIMIT 1`;
  return sql.exec<{ position: string }>(query, threadId, checkpointId).toArray()[0]?.position ?? checkpointId;
}

/**
 * What a checkpoint that is put is stored with: no position while ids follow the order of puts. Then its id is behind every
 * other of its namespace, as no id sorts behind its own row's position: it has no row yet.
 */
export function placeOf(sql: SqlExecutor, key: CheckpointKey): { latePosition: string | null; isNew: boolean } {
  const [threadId, ns, id] = keyColumns(key);
  const before = findNewest(sql, threadId, ns)?.position ?? "";
  // A child's checkpoints follow the one that its parent scheduled it from.
  const above = ns === "" ? "" : (findNewest(sql, threadId, "")?.position ?? "");
  if (id > before && id > above) return { latePosition: null, isNew: true };
  const query = `SELECT max(${POSITION}) AS newest FROM checkpoints WHERE thread_id = ?`;
  const { newest } = sql.exec<{ newest: string }>(query, threadId).one();
  const [counted = "", count = "0"] = newest.split(COUNTED);
  return { latePosition: `${counted}${COUNTED}${String(Number(count) + 1).padStart(COUNT_DIGITS, "0")}`, isNew: false };
}
