-- An owner's runs by age: what `POST /runs/search` walks, and what retention finds the old ones by. An update of a run
-- touches none of these columns, so the index costs one row a run.
CREATE INDEX runs_by_age ON runs (owner, created_at, run_id);
