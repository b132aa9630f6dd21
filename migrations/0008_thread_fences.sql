-- The newest epoch that wrote to D1 outside of the outbox, by thread: deletions and what an object does to its batches.
-- An ordinary run writes no row here. A statement of an older epoch breaks the CHECK, and its whole batch with it.
CREATE TABLE thread_fences (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  epoch INTEGER NOT NULL CONSTRAINT epoch_in_order CHECK (epoch >= 0),
  -- Writes that came from an older epoch.
  refused INTEGER NOT NULL DEFAULT 0,
  -- Milliseconds; set once the thread was deleted. Such a row is removed when no old instance can be left.
  deleted_at INTEGER,
  PRIMARY KEY (owner, thread_id)
) WITHOUT ROWID;

-- Of deleted threads alone, so that the cron reads nothing else.
CREATE INDEX thread_fences_deleted ON thread_fences (deleted_at) WHERE deleted_at IS NOT NULL;
