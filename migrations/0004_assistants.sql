-- Assistants of owners: clients choose their ids, so the key starts with the owner. The deployment's own assistants (one for
-- each graph, and the operator's agents) are not stored. Times are milliseconds since the epoch.
-- The row is the current version. WITHOUT ROWID and no index: a change is one row written, and an owner's rows lie together.
CREATE TABLE assistants (
  owner TEXT NOT NULL,
  assistant_id TEXT NOT NULL,
  -- One more for each change.
  version INTEGER NOT NULL,
  graph_id TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  -- JSON objects, as the API takes them.
  metadata TEXT NOT NULL,
  context TEXT NOT NULL,
  config TEXT NOT NULL,
  PRIMARY KEY (owner, assistant_id)
) WITHOUT ROWID;
