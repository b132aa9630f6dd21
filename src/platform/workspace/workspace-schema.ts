/**
 * The tables of a thread's workspace (`workspace-rows.ts` is their only writer).
 *
 * `WITHOUT ROWID` and no secondary index: one write is one billed row. An entry is keyed by its directory, so that a
 * listing reads that directory only; its body stands last, so that a listing reads no overflow pages. A small file is
 * one row; what exceeds a row goes on in `workspace_chunks` from chunk 1.
 */
import type { SchemaStep } from "../durable-storage/schema-ladder.ts";

// PERSISTED: a change is a new step with another id.
export const WORKSPACE_SCHEMA: SchemaStep = {
  id: "workspace-1",
  statements: [
    `CREATE TABLE workspace_entries (
      parent TEXT NOT NULL,
      name TEXT NOT NULL,
      kind TEXT NOT NULL,
      size INTEGER NOT NULL,
      modified_at INTEGER NOT NULL,
      version INTEGER NOT NULL,
      body BLOB,
      PRIMARY KEY (parent, name)
    ) WITHOUT ROWID`,
    `CREATE TABLE workspace_chunks (
      path TEXT NOT NULL,
      chunk INTEGER NOT NULL,
      body BLOB NOT NULL,
      PRIMARY KEY (path, chunk)
    ) WITHOUT ROWID`,
    // One row: the number of the last commit, and the sums that the limits are checked against.
    `CREATE TABLE workspace_head (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      version INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      entries INTEGER NOT NULL
    )`,
  ],
};
