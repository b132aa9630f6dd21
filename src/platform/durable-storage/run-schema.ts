/**
 * Tables of the thread's own facts: the thread row, its runs, the event outbox, the frame blocks and the delegations
 * in flight. PERSISTED: rows carry `v`; a new shape is a new step. WITHOUT ROWID and no secondary index: a row is one
 * billed write.
 */
import type { SchemaStep } from "./schema-ladder.ts";

export const RUN_SCHEMA: SchemaStep = {
  id: "runs-1",
  statements: [
    `CREATE TABLE thread (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      v INTEGER NOT NULL,
      owner TEXT NOT NULL,
      thread_id TEXT NOT NULL,
      metadata TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL,
      epoch INTEGER NOT NULL
    )`,
    `CREATE TABLE runs (
      run_id TEXT PRIMARY KEY,
      v INTEGER NOT NULL,
      status TEXT NOT NULL,
      graph_id TEXT NOT NULL,
      command TEXT NOT NULL,
      base_checkpoint_id TEXT,
      final_checkpoint_id TEXT,
      cancel_requested INTEGER NOT NULL,
      attempt INTEGER NOT NULL,
      recovery TEXT NOT NULL,
      frames_reserved INTEGER NOT NULL,
      error TEXT,
      interrupts TEXT,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL
    ) WITHOUT ROWID`,
    `CREATE TABLE event_outbox (
      block INTEGER PRIMARY KEY,
      v INTEGER NOT NULL,
      last_seq INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      thread_changes INTEGER NOT NULL,
      events TEXT NOT NULL
    )`,
    `CREATE TABLE frame_blocks (
      run_id TEXT NOT NULL,
      first_id INTEGER NOT NULL,
      v INTEGER NOT NULL,
      last_id INTEGER NOT NULL,
      bytes INTEGER NOT NULL,
      frames TEXT NOT NULL,
      PRIMARY KEY (run_id, first_id)
    ) WITHOUT ROWID`,
    `CREATE TABLE delegations (
      task_id TEXT PRIMARY KEY,
      v INTEGER NOT NULL,
      run_id TEXT NOT NULL,
      checkpoint_ns TEXT NOT NULL,
      steps INTEGER NOT NULL,
      cancelled INTEGER NOT NULL
    ) WITHOUT ROWID`,
  ],
};

/** What the server says about a run beside its status: options not used as asked, why it was held back. */
export const RUN_NOTES_SCHEMA: SchemaStep = {
  id: "run-notes-1",
  statements: ["ALTER TABLE runs ADD COLUMN notes TEXT"],
};

/** Who used how many tokens: summed up in the outbox, kept with the run, under the name of the delegation's subagent. */
export const RUN_USAGE_SCHEMA: SchemaStep = {
  id: "run-usage-1",
  statements: [
    "ALTER TABLE event_outbox ADD COLUMN usage TEXT",
    "ALTER TABLE runs ADD COLUMN usage TEXT",
    "ALTER TABLE delegations ADD COLUMN subagent_type TEXT NOT NULL DEFAULT 'unknown'",
  ],
};

/**
 * Runs that wait: the oldest run that was active when a run was accepted (null when it was alone), when a run is due, how
 * it is to be ended, and what its base held beside checkpoints.
 */
export const RUN_MULTITASK_SCHEMA: SchemaStep = {
  id: "run-multitask-1",
  statements: [
    "ALTER TABLE runs ADD COLUMN active_from TEXT",
    "ALTER TABLE runs ADD COLUMN due_at INTEGER",
    "ALTER TABLE runs ADD COLUMN cancel TEXT",
    "ALTER TABLE runs ADD COLUMN base_extras TEXT",
  ],
};

/** How long the thread lives, where a client said so. */
export const THREAD_TTL_SCHEMA: SchemaStep = {
  id: "thread-ttl-1",
  statements: ["ALTER TABLE thread ADD COLUMN ttl TEXT"],
};

/** Since when the thread is to be gone: what a deletion writes first, so that whoever wakes next finishes it. */
export const THREAD_DELETION_SCHEMA: SchemaStep = {
  id: "thread-deletion-1",
  statements: ["ALTER TABLE thread ADD COLUMN deleting_since INTEGER"],
};
