/**
 * Which rows of D1 are a thread's or an owner's, by what the database itself says about its tables: a table that a later
 * migration brings is asked as well, and one that names neither an owner nor a batch has to be named here.
 */
import { env } from "cloudflare:test";

/** Tables that are nobody's. */
const DEPLOYMENT = ["subagent_definitions", "d1_migrations"];

interface Table {
  readonly name: string;
  readonly columns: readonly string[];
}

/** Of the database itself, of Cloudflare, and of tests that keep something beside the schema. */
const OTHERS = /^(sqlite_|_cf|test_)/;

async function tables(): Promise<Table[]> {
  const { results } = await env.DB.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all<{
    name: string;
  }>();
  const found: Table[] = [];
  for (const { name } of results) {
    if (OTHERS.test(name)) continue;
    const columns = await env.DB.prepare(`PRAGMA table_info(${name})`).all<{ name: string }>();
    found.push({ name, columns: columns.results.map((column) => column.name) });
  }
  return found;
}

function rows(table: string, where: string, ...values: string[]): Promise<number> {
  const counting = env.DB.prepare(`SELECT count(*) AS n FROM ${table} WHERE ${where}`).bind(...values);
  return counting.first<number>("n").then((n) => n ?? 0);
}

/** Rows by table, those with none left out. `batchIds`: what hangs on a batch is found by it alone. */
async function countRows(
  countOwned: (table: Table) => Promise<number> | undefined,
  batchIds: readonly string[],
): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of await tables()) {
    let count = 0;
    const owned = countOwned(table);
    if (owned !== undefined) count = await owned;
    else if (table.columns.includes("batch_id")) {
      for (const batchId of batchIds) count += await rows(table.name, "batch_id = ?", batchId);
    } else if (!table.columns.includes("owner") && !DEPLOYMENT.includes(table.name)) {
      throw new Error(`whose are the rows of ${table.name}?`);
    }
    if (count > 0) counts[table.name] = count;
  }
  return counts;
}

export function threadRows(
  owner: string,
  threadId: string,
  batchIds: readonly string[],
): Promise<Record<string, number>> {
  return countRows(
    ({ name, columns }) =>
      columns.includes("owner") && columns.includes("thread_id")
        ? rows(name, "owner = ? AND thread_id = ?", owner, threadId)
        : undefined,
    batchIds,
  );
}

export function ownerRows(owner: string, batchIds: readonly string[]): Promise<Record<string, number>> {
  return countRows(
    ({ name, columns }) => (columns.includes("owner") ? rows(name, "owner = ?", owner) : undefined),
    batchIds,
  );
}
