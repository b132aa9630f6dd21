/** Drizzle's view of `migrations/0004` and `0007`: types for the read side. Owns no DDL; a test compares the two column by column. */
import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const assistants = sqliteTable(
  "assistants",
  {
    owner: text("owner").notNull(),
    assistantId: text("assistant_id").notNull(),
    version: integer("version").notNull(),
    graphId: text("graph_id").notNull(),
    name: text("name").notNull(),
    description: text("description"),
    createdAt: integer("created_at").notNull(),
    updatedAt: integer("updated_at").notNull(),
    metadata: text("metadata").notNull(),
    context: text("context").notNull(),
    config: text("config").notNull(),
  },
  (table) => [primaryKey({ columns: [table.owner, table.assistantId] })],
);

export const assistantVersions = sqliteTable(
  "assistant_versions",
  {
    owner: text("owner").notNull(),
    assistantId: text("assistant_id").notNull(),
    version: integer("version").notNull(),
    graphId: text("graph_id").notNull(),
    name: text("name").notNull(),
    description: text("description"),
    createdAt: integer("created_at").notNull(),
    metadata: text("metadata").notNull(),
    context: text("context").notNull(),
    config: text("config").notNull(),
  },
  (table) => [primaryKey({ columns: [table.owner, table.assistantId, table.version] })],
);
