-- Every key starts with the owner: thread ids are chosen by clients. WITHOUT ROWID keeps a row at one billed write.
CREATE TABLE threads (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  -- The object's wake that wrote the row; a retired instance's late write is refused.
  epoch INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  status TEXT NOT NULL,
  metadata TEXT NOT NULL,
  PRIMARY KEY (owner, thread_id)
) WITHOUT ROWID;

-- Listing by age. Status and metadata updates do not touch it.
CREATE INDEX threads_by_age ON threads (owner, created_at, thread_id);

CREATE TABLE runs (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  assistant_id TEXT NOT NULL,
  status TEXT NOT NULL,
  metadata TEXT NOT NULL,
  error TEXT,
  -- Bounds of the run's events in run_events.
  first_seq INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (owner, thread_id, run_id)
) WITHOUT ROWID;

CREATE TABLE run_events (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  category TEXT NOT NULL,
  content TEXT NOT NULL,
  metadata TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (owner, thread_id, seq)
) WITHOUT ROWID;
