import { env } from "cloudflare:test";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { expect, it } from "vitest";
import { assistants, assistantVersions } from "../../../src/platform/d1/schema/assistants.ts";
import { subagentDefinitions } from "../../../src/platform/d1/schema/subagents.ts";
import { runEvents, runs, threads } from "../../../src/platform/d1/schema/threads.ts";

interface ColumnInfo {
  name: string;
  type: string;
  notnull: number;
  pk: number;
}

async function migrated(table: string): Promise<object[]> {
  const { results } = await env.DB.prepare(`PRAGMA table_info(${table})`).all<ColumnInfo>();
  return results.map(({ name, type, notnull, pk }) => ({ name, type: type.toLowerCase(), notNull: notnull === 1, pk }));
}

function described(table: SQLiteTable): object[] {
  const { columns, primaryKeys } = getTableConfig(table);
  const key =
    primaryKeys[0]?.columns.map((column) => column.name) ??
    columns.filter((column) => column.primary).map((column) => column.name);
  return columns.map((column) => ({
    name: column.name,
    type: column.getSQLType(),
    notNull: column.notNull,
    pk: key.indexOf(column.name) + 1,
  }));
}

it.each([
  ["threads", threads],
  ["runs", runs],
  ["run_events", runEvents],
  ["subagent_definitions", subagentDefinitions],
  ["assistants", assistants],
  ["assistant_versions", assistantVersions],
])("R206: the drizzle schema of %s is what the migrations made", async (name, table) => {
  expect(getTableConfig(table).name).toBe(name);
  expect(described(table)).toEqual(await migrated(name));
});
