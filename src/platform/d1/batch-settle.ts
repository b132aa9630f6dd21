/**
 * Writes what attempts left behind: items, their history, the counters and the end of the batch, in one D1 `batch()`.
 *
 * Upholds B2 (every statement is guarded by the lease token; what it refuses is counted in `stale_writes`), B5 (a
 * terminal item holds no token), B7 (`offered_to` follows the finished items) and B8 (each class of outcome moves its
 * counter by `changes()` right behind its items). Items are addressed by key: `UPDATE … FROM json_each` would walk the batch.
 */
import { Buffer } from "node:buffer";
import type { SettleReport } from "../../domain/batch/batch-repository.ts";
import type { LeaseRef } from "../../domain/batch/batch.ts";
import type { ItemSettlement } from "../../domain/batch/item-settlement.ts";
import type { D1Access } from "./fence.ts";
import { PARAMETER_BYTES_MAX } from "./batch-submit.ts";

const field = (name: string): string => `(?3 ->> ('$."' || ordinal || '".${name}'))`;
const ITS_ITEMS = `batch_id = ?1 AND lease_token = ?2 AND ordinal IN (SELECT CAST(key AS INTEGER) FROM json_each(?3))`;

const INSERT_OUTPUTS = `
  INSERT INTO batch_outputs (batch_id, ordinal, outputs)
  SELECT batch_id, ordinal, ?4 FROM batch_items WHERE batch_id = ?1 AND lease_token = ?2 AND ordinal = ?3`;

const INSERT_EVENTS = `
  INSERT INTO batch_events (batch_id, ordinal, attempt, kind, lease_token, created_at, error)
  SELECT batch_id, ordinal, ${field("n")}, ${field("k")}, ?2, ?4, ${field("e")}
  FROM batch_items WHERE ${ITS_ITEMS} AND ${field("n")} IS NOT NULL`;

const UPDATE_ITEMS = `
  UPDATE batch_items SET status = ?4, lease_token = NULL, attempts = attempts + ${field("a")},
    deferrals = deferrals + ${field("d")}, error = ${field("e")}, usage = ${field("u")},
    result = coalesce(?5, ${field("r")})
  WHERE ${ITS_ITEMS}`;

/** `?2` writes were asked for. */
const COUNT = {
  pending: `
  UPDATE batches SET leased = leased - changes(), pending = pending + changes(),
    stale_writes = stale_writes + ?2 - changes(), updated_at = iif(changes() > 0, ?3, updated_at)
  WHERE batch_id = ?1`,
  completed: countFinished("completed"),
  failed: countFinished("failed"),
} as const;

function countFinished(status: "completed" | "failed"): string {
  return `
  UPDATE batches SET leased = leased - changes(), ${status} = ${status} + changes(),
    offered_to = max(offered_to, min(total_items, completed + failed + changes() + max_live_items)),
    status = iif(changes() > 0 AND completed + failed + changes() = total_items, 'completed', status),
    stale_writes = stale_writes + ?2 - changes(), updated_at = iif(changes() > 0, ?3, updated_at)
  WHERE batch_id = ?1`;
}

/** Settlements of one status whose JSON fits one parameter; a result too large for it travels alone in `result`. */
interface Part {
  readonly status: ItemSettlement["status"];
  readonly settlements: readonly ItemSettlement[];
  readonly json: string;
  readonly result: string | null;
}

interface Planned {
  readonly statement: D1PreparedStatement;
  /** Writes asked for, where the statement moves items. */
  readonly items: number;
}

export async function settleItems(
  db: D1Access,
  lease: Pick<LeaseRef, "batchId" | "token">,
  settlements: readonly ItemSettlement[],
  now: number,
): Promise<SettleReport> {
  if (settlements.length === 0) return { applied: 0, stale: 0 };
  const planned = toParts(settlements).flatMap((part) => planPart(db, lease, part, now));
  const results = await db.batch(planned.map(({ statement }) => statement));
  let applied = 0;
  for (const [place, { items }] of planned.entries()) if (items > 0) applied += results[place]?.meta.changes ?? 0;
  return { applied, stale: settlements.length - applied };
}

/** History and outputs come first: they are guarded by the token that the items lose. */
function planPart(
  db: D1Access,
  { batchId, token }: Pick<LeaseRef, "batchId" | "token">,
  part: Part,
  now: number,
): Planned[] {
  const { settlements, status, json } = part;
  const outputs = settlements.flatMap((settlement) =>
    settlement.outputs === null
      ? []
      : [db.prepare(INSERT_OUTPUTS).bind(batchId, token, settlement.ordinal, JSON.stringify(settlement.outputs))],
  );
  const events = settlements.some((settlement) => settlement.event !== null)
    ? [db.prepare(INSERT_EVENTS).bind(batchId, token, json, now)]
    : [];
  const items = db.prepare(UPDATE_ITEMS).bind(batchId, token, json, status, part.result);
  const count = db.prepare(COUNT[status]).bind(batchId, settlements.length, now);
  return [
    ...[...outputs, ...events].map((statement) => ({ statement, items: 0 })),
    { statement: items, items: settlements.length },
    { statement: count, items: 0 },
  ];
}

function toParts(settlements: readonly ItemSettlement[]): Part[] {
  return (["completed", "failed", "pending"] as const).flatMap((status) =>
    partsOf(
      status,
      settlements.filter((settlement) => settlement.status === status),
    ),
  );
}

function partsOf(status: ItemSettlement["status"], settlements: readonly ItemSettlement[]): Part[] {
  const parts: Part[] = [];
  let group: { settlement: ItemSettlement; entry: string }[] = [];
  let bytes = 2;
  const flush = (): void => {
    if (group.length === 0) return;
    const json = `{${group.map(({ entry }) => entry).join(",")}}`;
    parts.push({ status, settlements: group.map(({ settlement }) => settlement), json, result: null });
    [group, bytes] = [[], 2];
  };
  for (const settlement of settlements) {
    const entry = toEntry(settlement, settlement.result);
    const size = Buffer.byteLength(entry) + 1;
    if (size > PARAMETER_BYTES_MAX) {
      const json = `{${toEntry(settlement, null)}}`;
      parts.push({ status, settlements: [settlement], json, result: settlement.result });
      continue;
    }
    if (bytes + size > PARAMETER_BYTES_MAX) flush();
    group.push({ settlement, entry });
    bytes += size;
  }
  flush();
  return parts;
}

function toEntry(settlement: ItemSettlement, result: string | null): string {
  const { ordinal, attemptsSpent, deferred, error, usage, event } = settlement;
  const fields = {
    a: attemptsSpent,
    d: deferred,
    e: error,
    u: usage === null ? null : JSON.stringify(usage),
    r: result,
    n: event?.attempt ?? null,
    k: event?.kind ?? null,
  };
  return `"${ordinal}":${JSON.stringify(fields)}`;
}
