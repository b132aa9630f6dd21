/**
 * Drizzle's view of the tables of `migrations/0002`: row types for the batch repository. Owns no DDL: the SQL file is the
 * truth (drizzle-kit cannot write `WITHOUT ROWID`) and a test compares the two column by column.
 */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const batches = sqliteTable("batches", {
  batchId: text("batch_id").notNull().primaryKey(),
  owner: text("owner").notNull(),
  threadId: text("thread_id").notNull(),
  submissionKey: text("submission_key"),
  status: text("status", { enum: ["loading", "running", "completed", "cancelled"] }).notNull(),
  title: text("title").notNull(),
  subagentType: text("subagent_type").notNull(),
  totalItems: integer("total_items").notNull(),
  pending: integer("pending").notNull(),
  leased: integer("leased").notNull(),
  completed: integer("completed").notNull(),
  failed: integer("failed").notNull(),
  cancelled: integer("cancelled").notNull(),
  offeredTo: integer("offered_to").notNull(),
  maxLiveItems: integer("max_live_items").notNull(),
  maxRunningItems: integer("max_running_items").notNull(),
  maxAttempts: integer("max_attempts").notNull(),
  timeoutSeconds: integer("timeout_seconds").notNull(),
  staleWrites: integer("stale_writes").notNull(),
  createdAt: integer("created_at").notNull(),
  updatedAt: integer("updated_at").notNull(),
});

export const batchDefinitions = sqliteTable("batch_definitions", {
  batchId: text("batch_id").notNull().primaryKey(),
  definition: text("definition").notNull(),
  submitterRole: text("submitter_role", { enum: ["user", "admin"] }).notNull(),
});

export const batchSubmissions = sqliteTable(
  "batch_submissions",
  {
    owner: text("owner").notNull(),
    threadId: text("thread_id").notNull(),
    submissionKey: text("submission_key").notNull(),
    batchId: text("batch_id").notNull(),
    bodyHash: text("body_hash").notNull(),
  },
  (table) => [primaryKey({ columns: [table.owner, table.threadId, table.submissionKey] })],
);

export const liveBatches = sqliteTable("live_batches", {
  batchId: text("batch_id").notNull().primaryKey(),
  owner: text("owner").notNull(),
  threadId: text("thread_id").notNull(),
  createdAt: integer("created_at").notNull(),
});

export const batchItems = sqliteTable(
  "batch_items",
  {
    batchId: text("batch_id").notNull(),
    ordinal: integer("ordinal").notNull(),
    status: text("status", { enum: ["pending", "leased", "completed", "failed", "cancelled"] }).notNull(),
    attempts: integer("attempts").notNull(),
    deferrals: integer("deferrals").notNull(),
    leaseToken: text("lease_token"),
    usage: text("usage"),
    error: text("error"),
    itemKey: text("item_key").notNull(),
    result: text("result"),
    prompt: text("prompt").notNull(),
  },
  (table) => [primaryKey({ columns: [table.batchId, table.ordinal] })],
);

export const leases = sqliteTable(
  "leases",
  {
    batchId: text("batch_id").notNull(),
    grantId: text("grant_id").notNull(),
    leaseToken: text("lease_token").notNull(),
    expiresAt: integer("expires_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.batchId, table.grantId] })],
);

export const batchEvents = sqliteTable(
  "batch_events",
  {
    batchId: text("batch_id").notNull(),
    ordinal: integer("ordinal").notNull(),
    attempt: integer("attempt").notNull(),
    kind: text("kind", { enum: ["completed", "failed", "lease_expired"] }).notNull(),
    leaseToken: text("lease_token").notNull(),
    createdAt: integer("created_at").notNull(),
    error: text("error"),
  },
  (table) => [primaryKey({ columns: [table.batchId, table.ordinal, table.attempt] })],
);

export const batchOutputs = sqliteTable(
  "batch_outputs",
  {
    batchId: text("batch_id").notNull(),
    ordinal: integer("ordinal").notNull(),
    outputs: text("outputs").notNull(),
  },
  (table) => [primaryKey({ columns: [table.batchId, table.ordinal] })],
);

export const batchFiles = sqliteTable(
  "batch_files",
  {
    batchId: text("batch_id").notNull(),
    path: text("path").notNull(),
    part: integer("part").notNull(),
    content: text("content").notNull(),
  },
  (table) => [primaryKey({ columns: [table.batchId, table.path, table.part] })],
);
