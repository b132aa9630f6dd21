/** Statements are prepared once a database: instances come and go, their SQL stays. */
import type { DatabaseSync, StatementSync } from "node:sqlite";

const statements = new WeakMap<DatabaseSync, Map<string, StatementSync>>();

export function prepared(database: DatabaseSync, query: string): StatementSync {
  let known = statements.get(database);
  if (known === undefined) statements.set(database, (known = new Map()));
  let statement = known.get(query);
  if (statement === undefined) known.set(query, (statement = database.prepare(query)));
  return statement;
}
