/** Drizzle's view of `migrations/0003`: types for the read side. Owns no DDL; a test compares the two column by column. */
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

export const subagentDefinitions = sqliteTable("subagent_definitions", {
  name: text("name").notNull().primaryKey(),
  version: integer("version").notNull(),
  enabled: integer("enabled").notNull(),
  definition: text("definition").notNull(),
  createdAt: integer("created_at").notNull(),
  updatedAt: integer("updated_at").notNull(),
  updatedBy: text("updated_by").notNull(),
});
