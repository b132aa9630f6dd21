/**
 * Drizzle's view of the tables of `migrations/0001`: types for the read side. Owns no DDL: drizzle-kit cannot write
 * `WITHOUT ROWID`, so the SQL file is the truth and a test compares the two column by column.
 */
import { index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const threads = sqliteTable(
  "threads",
  {
    owner: text("owner").notNull(),
    threadId: text("thread_id").notNull(),
    epoch: integer("epoch").notNull(),
    createdAt: text("created_at").notNull(),
    updatedAt: text("updated_at").notNull(),
    status: text("status").notNull(),
    metadata: text("metadata").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.threadId] }),
    index("threads_by_age").on(table.owner, table.createdAt, table.threadId),
  ],
);

export const runs = sqliteTable(
  "runs",
  {
    owner: text("owner").notNull(),
    threadId: text("thread_id").notNull(),
    runId: text("run_id").notNull(),
    epoch: integer("epoch").notNull(),
    assistantId: text("assistant_id").notNull(),
    status: text("status").notNull(),
    metadata: text("metadata").notNull(),
    error: text("error"),
    firstSeq: integer("first_seq").notNull(),
    lastSeq: integer("last_seq").notNull(),
    createdAt: text("created_at").notNull(),
    updatedAt: text("updated_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.threadId, table.runId] }),
    index("runs_by_age").on(table.owner, table.createdAt, table.runId),
  ],
);

export const runEvents = sqliteTable(
  "run_events",
  {
    owner: text("owner").notNull(),
    threadId: text("thread_id").notNull(),
    seq: integer("seq").notNull(),
    runId: text("run_id").notNull(),
    eventType: text("event_type").notNull(),
    category: text("category").notNull(),
    content: text("content").notNull(),
    metadata: text("metadata").notNull(),
    createdAt: text("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.owner, table.threadId, table.seq] })],
);
