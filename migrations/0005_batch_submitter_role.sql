-- The role of whoever submitted the batch: its items may use what that role may. Beside the definition, which never changes,
-- not in `batches`, whose row every claim and settle writes again. Batches of before get the least.
ALTER TABLE batch_definitions ADD COLUMN submitter_role TEXT NOT NULL DEFAULT 'user' CHECK (submitter_role IN ('user', 'admin'));
