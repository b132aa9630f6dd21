import { env } from "cloudflare:test";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { expect, it } from "vitest";
import * as schema from "../../../src/platform/d1/schema/batches.ts";

const TABLES: [string, SQLiteTable][] = Object.values(schema).map((table) => [getTableConfig(table).name, table]);

it("R206: every table of the batch migration has its drizzle schema", async () => {
  const { results } = await env.DB.prepare(
    `SELECT name FROM sqlite_master WHERE type = 'table' AND (name LIKE '%batch%' OR name = 'leases') ORDER BY name`,
  ).all<{ name: string }>();
  expect(results.map(({ name }) => name)).toEqual(TABLES.map(([name]) => name).sort());
});

it.each(TABLES)("R206: the drizzle schema of %s is what the migrations made", async (name, table) => {
  const { results } = await env.DB.prepare(`PRAGMA table_info(${name})`).all<{
    name: string;
    type: string;
    notnull: number;
    pk: number;
  }>();
  const { columns, primaryKeys } = getTableConfig(table);
  const key =
    primaryKeys[0]?.columns.map((column) => column.name) ??
    columns.filter((column) => column.primary).map((column) => column.name);
  expect(
    columns.map((column) => ({
      name: column.name,
      type: column.getSQLType(),
      notnull: column.notNull ? 1 : 0,
      pk: key.indexOf(column.name) + 1,
    })),
  ).toEqual(results.map(({ name, type, notnull, pk }) => ({ name, type: type.toLowerCase(), notnull, pk })));
});

it("the bill: no table that an item writes has a secondary index or a rowid, each of which would be one more billed row a write", async () => {
  for (const [name] of TABLES) {
    const indexes = await env.DB.prepare(`PRAGMA index_list(${name})`).all<{ name: string; origin: string }>();
    const secondary = indexes.results.filter(({ origin }) => origin !== "pk").map((index) => index.name);
    // One row a submit, for the deletion of a thread.
    expect(secondary).toEqual(name === "batches" ? ["batches_by_thread"] : []);
    const made = await env.DB.prepare("SELECT sql FROM sqlite_master WHERE name = ?").bind(name).all<{ sql: string }>();
    expect(made.results[0]?.sql).toMatch(/WITHOUT ROWID$/);
  }
});
