/**
 * Stores a new batch. Several statements, since one parameter carries at most 1 MB: the batch is `loading`, and so
 * invisible, until its last part flips it to `running`.
 *
 * Upholds B9: the submission row is inserted with the batch row, so two submissions of one key cannot both exist. Every
 * part is guarded by the batch still loading: a load that was discarded meanwhile inserts nothing and cannot flip.
 */
import { Buffer } from "node:buffer";
import type { BatchRepository, BatchSubmission, SubmissionRef } from "../../domain/batch/batch-repository.ts";
import type { BatchFile, BatchView } from "../../domain/batch/batch.ts";
import type { BatchItemDraft } from "../../domain/batch/validate-batch.ts";
import { invariant } from "../../domain/shared/assert.ts";
import { err, ok } from "../../domain/shared/result.ts";
import type { D1Access } from "./fence.ts";
import { BATCH_COLUMNS, toBatchView, type BatchRow } from "./batch-rows.ts";

/** D1 takes parameters up to 2 MB; half of it leaves room for the row's other columns. */
export const PARAMETER_BYTES_MAX = 1_000_000;
/** Divisible by 3, so that every part is base64 without padding inside; 1 MB once encoded. */
const FILE_PART_BYTES = 750_000;

const INSERT_BATCH = `
  INSERT INTO batches (batch_id, owner, thread_id, submission_key, status, title, subagent_type, total_items, pending, leased, completed,
    failed, cancelled, offered_to, max_live_items, max_running_items, max_attempts, timeout_seconds, stale_writes,
    created_at, updated_at)
  VALUES (?1, ?2, ?3, ?12, 'loading', ?4, ?5, ?6, 0, 0, 0, 0, 0, 0, ?7, ?8, ?9, ?10, 0, ?11, ?11)`;

const IS_LOADING = "EXISTS (SELECT 1 FROM batches WHERE batch_id = ?1 AND status = 'loading')";

const INSERT_ITEMS = `
  INSERT INTO batch_items (batch_id, ordinal, status, attempts, deferrals, item_key, prompt)
  SELECT ?1, ?2 + key, 'pending', 0, 0, value ->> 0, value ->> 1 FROM json_each(?3) WHERE ${IS_LOADING}`;

const FLIP = `
  UPDATE batches SET status = 'running', pending = total_items, offered_to = min(total_items, max_live_items)
  WHERE batch_id = ?1 AND status = 'loading' RETURNING ${BATCH_COLUMNS}`;

const DISCARD = [
  `DELETE FROM batch_submissions WHERE (owner, thread_id, submission_key) IN (
     SELECT owner, thread_id, submission_key FROM batches WHERE batch_id = ?1 AND status = 'loading')`,
  ...["batch_items", "batch_files", "batch_definitions", "live_batches"].map(
    (table) => `DELETE FROM ${table} WHERE batch_id = ?1 AND ${IS_LOADING}`,
  ),
  "DELETE FROM batches WHERE batch_id = ?1 AND status = 'loading'",
];

type StoredSubmission = BatchRow & { readonly body_hash: string };

export class BatchSubmit {
  readonly #db: D1Access;

  constructor(db: D1Access) {
    this.#db = db;
  }

  async find(submission: SubmissionRef): ReturnType<BatchRepository["findSubmission"]> {
    const stored = await this.#stored(submission);
    if (stored === undefined || stored.status === "loading") return ok(undefined);
    if (stored.body_hash === submission.bodyHash) return ok(toBatchView(stored));
    return err({ reason: "idempotency_conflict", message: "this submission key was used for another batch" });
  }

  /** One caller at a time for a key: a loading batch found here is taken for the leftover of a dead load. */
  async submit(submission: BatchSubmission): ReturnType<BatchRepository["submit"]> {
    const { submissionKey } = submission;
    if (submissionKey !== null) {
      const found = await this.find({ ...submission, submissionKey });
      if (!found.ok) return found;
      if (found.value !== undefined) return ok({ batch: found.value, created: false });
      const leftover = await this.#stored({ ...submission, submissionKey });
      if (leftover !== undefined) await this.discard(leftover.batch_id);
    }
    return ok({ batch: await this.#store(submission), created: true });
  }

  async discard(batchId: string): Promise<void> {
    await this.#db.batch(DISCARD.map((sql) => this.#db.prepare(sql).bind(batchId)));
  }

  async forget(owner: string, threadId: string): Promise<void> {
    const forget = this.#db.prepare("DELETE FROM batch_submissions WHERE owner = ?1 AND thread_id = ?2");
    await this.#db.batch([forget.bind(owner, threadId)]);
  }

  async #stored({ owner, threadId, submissionKey }: SubmissionRef): Promise<StoredSubmission | undefined> {
    const { results } = await this.#db
      .prepare(
        `SELECT s.body_hash, b.* FROM batch_submissions s JOIN batches b ON b.batch_id = s.batch_id
         WHERE s.owner = ?1 AND s.thread_id = ?2 AND s.submission_key = ?3`,
      )
      .bind(owner, threadId, submissionKey)
      .all<StoredSubmission>();
    return results[0];
  }

  async #store(submission: BatchSubmission): Promise<BatchView> {
    const { batchId } = submission;
    const parts = [
      ...itemParts(submission.plan.items).map(({ first, json }) =>
        this.#db.prepare(INSERT_ITEMS).bind(batchId, first, json),
      ),
      ...submission.files.flatMap((file) => this.#fileParts(batchId, file)),
    ];
    const last = parts.pop();
    invariant(last !== undefined, "a batch has items");
    const opening = this.#opening(submission);
    const closing = [last, this.#db.prepare(FLIP).bind(batchId)];
    if (parts.length === 0) return flipped(await this.#db.batch<BatchRow>([...opening, ...closing]));
    await this.#db.batch(opening);
    for (const part of parts) await this.#db.batch([part]);
    return flipped(await this.#db.batch<BatchRow>(closing));
  }

  #opening(submission: BatchSubmission): D1PreparedStatement[] {
    const { batchId, owner, threadId, submissionKey, bodyHash, plan, submitterRole, now } = submission;
    const statements = [
      this.#db
        .prepare(INSERT_BATCH)
        .bind(
          batchId,
          owner,
          threadId,
          plan.title,
          plan.subagentType,
          plan.items.length,
          plan.maxLiveItems,
          plan.maxRunningItems,
          plan.maxAttempts,
          plan.timeoutSeconds,
          now,
          submissionKey,
        ),
      this.#db
        .prepare("INSERT INTO batch_definitions (batch_id, definition, submitter_role) VALUES (?1, ?2, ?3)")
        .bind(batchId, JSON.stringify(submission.definition), submitterRole),
      this.#db
        .prepare("INSERT INTO live_batches (batch_id, owner, thread_id, created_at) VALUES (?1, ?2, ?3, ?4)")
        .bind(batchId, owner, threadId, now),
    ];
    if (submissionKey === null) return statements;
    const submitted = this.#db
      .prepare(
        `INSERT INTO batch_submissions (owner, thread_id, submission_key, batch_id, body_hash)
         VALUES (?1, ?2, ?3, ?4, ?5)`,
      )
      .bind(owner, threadId, submissionKey, batchId, bodyHash);
    return [submitted, ...statements];
  }

  #fileParts(batchId: string, file: BatchFile): D1PreparedStatement[] {
    const parts = Math.max(1, Math.ceil(file.bytes.byteLength / FILE_PART_BYTES));
    return Array.from({ length: parts }, (_, part) => {
      const bytes = file.bytes.subarray(part * FILE_PART_BYTES, (part + 1) * FILE_PART_BYTES);
      return this.#db
        .prepare(`INSERT INTO batch_files (batch_id, path, part, content) SELECT ?1, ?2, ?3, ?4 WHERE ${IS_LOADING}`)
        .bind(batchId, file.path, part, Buffer.from(bytes).toString("base64"));
    });
  }
}

function flipped(results: readonly D1Result<BatchRow>[]): BatchView {
  const row = results.at(-1)?.results[0];
  if (row === undefined) throw new Error("the batch was discarded while it was loading");
  return toBatchView(row);
}

/** Items as JSON arrays of `[key, prompt]`, each within the parameter bound. */
function itemParts(items: readonly BatchItemDraft[]): { first: number; json: string }[] {
  const parts: { first: number; json: string }[] = [];
  let pairs: string[] = [];
  let bytes = 2;
  let first = 0;
  for (const [ordinal, item] of items.entries()) {
    const pair = JSON.stringify([item.key, item.prompt]);
    const size = Buffer.byteLength(pair) + 1;
    if (pairs.length > 0 && bytes + size > PARAMETER_BYTES_MAX) {
      parts.push({ first, json: `[${pairs.join(",")}]` });
      [pairs, bytes, first] = [[], 2, ordinal];
    }
    pairs.push(pair);
    bytes += size;
  }
  parts.push({ first, json: `[${pairs.join(",")}]` });
  return parts;
}
