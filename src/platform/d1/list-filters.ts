/** Conditions that the owner's lists of threads and of runs share. Owns no statement and names no owner: the lists do. */
import { type AnyColumn, gt, lt, sql, type SQL } from "drizzle-orm";

export interface Times {
  readonly created_after?: string | undefined;
  readonly created_before?: string | undefined;
  readonly updated_after?: string | undefined;
  readonly updated_before?: string | undefined;
}

export function withinTimes(
  { createdAt, updatedAt }: { readonly createdAt: AnyColumn; readonly updatedAt: AnyColumn },
  times: Times,
): (SQL | undefined)[] {
  return [
    times.created_after === undefined ? undefined : gt(createdAt, times.created_after),
    times.created_before === undefined ? undefined : lt(createdAt, times.created_before),
    times.updated_after === undefined ? undefined : gt(updatedAt, times.updated_after),
    times.updated_before === undefined ? undefined : lt(updatedAt, times.updated_before),
  ];
}

/**
 * Every node of `metadata` is at the same place in the column's. SQLite names the places of both documents (`fullkey`), so
 * keys with dots or quotes need no escaping here.
 */
export function containing(column: AnyColumn, metadata: Record<string, unknown>): SQL {
  return sql`NOT EXISTS (
    SELECT 1 FROM json_tree(${JSON.stringify(metadata)}) AS asked
    WHERE NOT EXISTS (
      SELECT 1 FROM json_tree(${column}) AS held
      WHERE held.fullkey = asked.fullkey AND held.type = asked.type AND held.atom IS asked.atom
    )
  )`;
}
