-- Which batches a thread has: what deletes them with their thread. An update of a batch touches none of these columns, so
-- the index costs one row a submit.
CREATE INDEX batches_by_thread ON batches (owner, thread_id, batch_id);
