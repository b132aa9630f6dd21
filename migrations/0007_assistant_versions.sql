-- Every version of an owner's assistant, so that an earlier one can be looked at and made the current one again. The row in
-- `assistants` is the current version; it stands here too. Bounded for each assistant: the oldest ones are let go.
-- WITHOUT ROWID and no index: the key answers "the newest versions of this assistant".
CREATE TABLE assistant_versions (
  owner TEXT NOT NULL,
  assistant_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  graph_id TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT,
  -- Of the version, in milliseconds since the epoch.
  created_at INTEGER NOT NULL,
  metadata TEXT NOT NULL,
  context TEXT NOT NULL,
  config TEXT NOT NULL,
  PRIMARY KEY (owner, assistant_id, version)
) WITHOUT ROWID;

INSERT INTO assistant_versions (owner, assistant_id, version, graph_id, name, description, created_at, metadata, context, config)
SELECT owner, assistant_id, version, graph_id, name, description, updated_at, metadata, context, config FROM assistants;
