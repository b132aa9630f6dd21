/**
 * The schema of a ThreadObject's SQLite: every table, in the order it was introduced.
 *
 * Owns the list. Each subsystem exports its own `SchemaStep` beside its code and is appended here; a released list only
 * grows at its end. Invariant: the constructor of the object writes nothing, so `ensureSchema` is called by the first
 * accepted command, and everything before that asks `hasSchema`.
 */
import { BATCH_WINDOW_SCHEMA } from "./batch-window-store.ts";
import { CHECKPOINT_ORDER_SCHEMA } from "./checkpoint-order.ts";
import { CHECKPOINT_SCHEMA } from "./checkpoint-schema.ts";
import { GRANT_SCHEMA } from "./grant-store.ts";
import { IDEMPOTENCY_SCHEMA } from "./idempotency-store.ts";
import {
  RUN_MULTITASK_SCHEMA,
  RUN_NOTES_SCHEMA,
  RUN_SCHEMA,
  RUN_USAGE_SCHEMA,
  THREAD_DELETION_SCHEMA,
  THREAD_TTL_SCHEMA,
} from "./run-schema.ts";
import { TOOL_START_SCHEMA } from "./tool-start-store.ts";
import { WEBHOOK_SCHEMA } from "./webhook-store.ts";
import { WORKSPACE_SCHEMA } from "../workspace/workspace-schema.ts";
import { climbSchemaLadder, hasSchemaLadder, type SchemaStep } from "./schema-ladder.ts";

export const OBJECT_SCHEMA: readonly SchemaStep[] = [
  CHECKPOINT_SCHEMA,
  GRANT_SCHEMA,
  RUN_SCHEMA,
  BATCH_WINDOW_SCHEMA,
  WORKSPACE_SCHEMA,
  RUN_USAGE_SCHEMA,
  RUN_NOTES_SCHEMA,
  TOOL_START_SCHEMA,
  RUN_MULTITASK_SCHEMA,
  WEBHOOK_SCHEMA,
  IDEMPOTENCY_SCHEMA,
  THREAD_DELETION_SCHEMA,
  CHECKPOINT_ORDER_SCHEMA,
  THREAD_TTL_SCHEMA,
];

/** Brings storage to the code's schema; cheap when it is there (two small reads). */
export function ensureSchema(storage: DurableObjectStorage): void {
  climbSchemaLadder(storage, OBJECT_SCHEMA);
}

/** True once a command was accepted by this object. Writes nothing. */
export function hasSchema(storage: DurableObjectStorage): boolean {
  return hasSchemaLadder(storage);
}
