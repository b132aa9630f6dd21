-- Subagents that administrators keep for the whole deployment: no owner in the key. Whether a name is taken by a built-in or
-- by configuration is decided where the row is read. Times are milliseconds since the epoch.
CREATE TABLE subagent_definitions (
  name TEXT NOT NULL PRIMARY KEY,
  -- One more for each change; an update names the version it read.
  version INTEGER NOT NULL,
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  -- JSON with `v`.
  definition TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL
) WITHOUT ROWID;
