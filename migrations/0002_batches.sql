-- Durable batches. WITHOUT ROWID and no secondary index: a row is one billed write. Batch ids are UUID v7 minted here,
-- so keys may start with them; submission keys and thread ids are chosen by clients, so that key starts with the owner.
-- Times are milliseconds since the epoch.
CREATE TABLE batches (
  batch_id TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  submission_key TEXT,
  status TEXT NOT NULL CHECK (status IN ('loading', 'running', 'completed', 'cancelled')),
  title TEXT NOT NULL,
  subagent_type TEXT NOT NULL,
  total_items INTEGER NOT NULL,
  -- Items by status; at rest they equal the sums over batch_items (B8).
  pending INTEGER NOT NULL CHECK (pending >= 0),
  leased INTEGER NOT NULL CHECK (leased >= 0),
  completed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  -- Ordinals below it may be claimed; moved by settles, never more than max_live_items past the finished ones (B7).
  offered_to INTEGER NOT NULL,
  max_live_items INTEGER NOT NULL,
  max_running_items INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  timeout_seconds INTEGER NOT NULL,
  -- Writes that came under a lease no longer held (B2).
  stale_writes INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Apart from `batches`, whose row is rewritten by every claim and settle.
CREATE TABLE batch_definitions (
  batch_id TEXT NOT NULL PRIMARY KEY,
  definition TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE batch_submissions (
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  submission_key TEXT NOT NULL,
  batch_id TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  PRIMARY KEY (owner, thread_id, submission_key)
) WITHOUT ROWID;

-- Batches whose thread object has not acknowledged their end: what the cron sweep reads instead of all batches.
CREATE TABLE live_batches (
  batch_id TEXT NOT NULL PRIMARY KEY,
  owner TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Wide columns last.
CREATE TABLE batch_items (
  batch_id TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'leased', 'completed', 'failed', 'cancelled')),
  -- Spent by real failures and expired leases only (B3).
  attempts INTEGER NOT NULL,
  deferrals INTEGER NOT NULL,
  lease_token TEXT,
  usage TEXT,
  error TEXT,
  item_key TEXT NOT NULL,
  result TEXT,
  prompt TEXT NOT NULL,
  PRIMARY KEY (batch_id, ordinal)
) WITHOUT ROWID;

-- One row per claim, kept after it: a grant is claimed once, so a doubled wake finds its row taken.
CREATE TABLE leases (
  batch_id TEXT NOT NULL,
  grant_id TEXT NOT NULL,
  lease_token TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (batch_id, grant_id)
) WITHOUT ROWID;

-- The history of an item: how each of its attempts ended.
CREATE TABLE batch_events (
  batch_id TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  -- From 1.
  attempt INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('completed', 'failed', 'lease_expired')),
  lease_token TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  error TEXT,
  PRIMARY KEY (batch_id, ordinal, attempt)
) WITHOUT ROWID;

-- What an item wrote under outputs/: one JSON object, path to text or base64. Most items have no row.
CREATE TABLE batch_outputs (
  batch_id TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  outputs TEXT NOT NULL,
  PRIMARY KEY (batch_id, ordinal)
) WITHOUT ROWID;

-- The snapshot of workspace files taken at submit, in parts under the 2 MB row, base64.
CREATE TABLE batch_files (
  batch_id TEXT NOT NULL,
  path TEXT NOT NULL,
  part INTEGER NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (batch_id, path, part)
) WITHOUT ROWID;
