/**
 * The tables of the checkpointer (`checkpoint-saver.ts` is their only writer).
 *
 * `WITHOUT ROWID` and no secondary index: one write is one billed row. Wide columns stand last, so that a walk over
 * parents reads no overflow pages. Bodies are packed by `packed-body.ts`; what exceeds a row goes on in
 * `checkpoint_chunks` (`task_id` is empty there for the checkpoint's own body).
 */
import type { SchemaStep } from "./schema-ladder.ts";

// PERSISTED: a change is a new step with another id.
export const CHECKPOINT_SCHEMA: SchemaStep = {
  id: "checkpoints-1",
  statements: [
    // value_holders: JSON, channel → 1 when the value is in this row, else the id of the checkpoint whose row has it.
    `CREATE TABLE checkpoints (
      thread_id TEXT NOT NULL,
      checkpoint_ns TEXT NOT NULL,
      checkpoint_id TEXT NOT NULL,
      parent_id TEXT,
      value_holders TEXT NOT NULL,
      chunks INTEGER NOT NULL,
      body BLOB NOT NULL,
      PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
    ) WITHOUT ROWID`,
    `CREATE TABLE checkpoint_writes (
      thread_id TEXT NOT NULL,
      checkpoint_ns TEXT NOT NULL,
      checkpoint_id TEXT NOT NULL,
      task_id TEXT NOT NULL,
      chunks INTEGER NOT NULL,
      body BLOB NOT NULL,
      PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id)
    ) WITHOUT ROWID`,
    `CREATE TABLE checkpoint_chunks (
      thread_id TEXT NOT NULL,
      checkpoint_ns TEXT NOT NULL,
      checkpoint_id TEXT NOT NULL,
      task_id TEXT NOT NULL,
      chunk INTEGER NOT NULL,
      body BLOB NOT NULL,
      PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, chunk)
    ) WITHOUT ROWID`,
  ],
};
