/**
 * What a consumer does before its items run and while they run: claim, load the snapshot, heartbeat.
 *
 * Upholds B1 (items carry the token of a lease row with an expiry), B6 (a grant has one lease row for ever, so a doubled
 * wake claims nothing), B7 (at most `max_running_items` leased, only below `offered_to`) and B8 (counters move by
 * `changes()`). Reads the wake's range only: asking the whole batch for its first pending items would read its finished ones.
 */
import { Buffer } from "node:buffer";
import { WAKE_SLOTS_MAX } from "../../domain/batch/batch-limits.ts";
import type { Claim, ClaimRequest, Heartbeat } from "../../domain/batch/batch-repository.ts";
import type { BatchFile, LeaseRef } from "../../domain/batch/batch.ts";
import type { Role } from "../../domain/trust/principal.ts";
import { invariant } from "../../domain/shared/assert.ts";
import { toClaimedItems, type ClaimedItemRow } from "./batch-rows.ts";

const TAKE_LEASE = `
  INSERT INTO leases (batch_id, grant_id, lease_token, expires_at)
  SELECT batch_id, ?2, ?3, ?4 FROM batches WHERE batch_id = ?1 AND owner = ?5 AND status = 'running'
  ON CONFLICT (batch_id, grant_id) DO NOTHING`;

// A negative LIMIT means none and a NULL one is an error, so both are clamped away.
const CLAIM_ITEMS = `
  UPDATE batch_items SET status = 'leased', lease_token = ?3
  WHERE batch_id = ?1 AND status = 'pending' AND ordinal IN (
    SELECT ordinal FROM batch_items
    WHERE batch_id = ?1 AND ordinal >= ?4 AND ordinal < ?5 AND status = 'pending'
      AND ordinal < (SELECT offered_to FROM batches WHERE batch_id = ?1)
    ORDER BY ordinal
    LIMIT coalesce((
      SELECT max(0, min(?6, b.max_running_items - b.leased))
      FROM batches b JOIN leases l ON l.batch_id = b.batch_id AND l.grant_id = ?2 AND l.lease_token = ?3
      WHERE b.batch_id = ?1 AND b.status = 'running'), 0))
  RETURNING ordinal, item_key, prompt, attempts`;

const COUNT_CLAIM = `
  UPDATE batches SET pending = pending - changes(), leased = leased + changes(), updated_at = ?2
  WHERE batch_id = ?1 AND changes() > 0
  RETURNING subagent_type, max_attempts, timeout_seconds,
    (SELECT definition FROM batch_definitions d WHERE d.batch_id = ?1) AS definition,
    (SELECT submitter_role FROM batch_definitions d WHERE d.batch_id = ?1) AS submitter_role`;

const HEARTBEAT = `
  UPDATE leases SET expires_at = ?4
  WHERE batch_id = ?1 AND grant_id = ?2 AND lease_token = ?3 AND expires_at > ?5
  RETURNING (SELECT status FROM batches WHERE batch_id = ?1) AS status`;

interface FactsRow {
  readonly subagent_type: string;
  readonly max_attempts: number;
  readonly timeout_seconds: number;
  readonly definition: string;
  readonly submitter_role: Role;
}

export class BatchClaims {
  readonly #db: D1Database;

  constructor(db: D1Database) {
    this.#db = db;
  }

  async claim({ wake, leaseToken, now, leaseExpiresAt }: ClaimRequest): Promise<Claim> {
    if (wake.expiresAt <= now) return { kind: "expired" };
    const { batchId, grantId, owner, from, to } = wake;
    const slots = Math.min(wake.slots, WAKE_SLOTS_MAX);
    const [leased, claimed, counted] = await this.#db.batch([
      this.#db.prepare(TAKE_LEASE).bind(batchId, grantId, leaseToken, leaseExpiresAt, owner),
      this.#db.prepare(CLAIM_ITEMS).bind(batchId, grantId, leaseToken, from, to, slots),
      this.#db.prepare(COUNT_CLAIM).bind(batchId, now),
    ]);
    const facts = counted?.results[0] as FactsRow | undefined;
    if (facts === undefined) return this.#whyNothing(wake, leased?.meta.changes ?? 0);
    const items = toClaimedItems((claimed?.results ?? []) as ClaimedItemRow[]);
    invariant(items.length <= slots, "a claim takes no more than its slots");
    return {
      kind: "claimed",
      lease: { batchId, grantId, token: leaseToken },
      items,
      batch: {
        subagentType: facts.subagent_type,
        definition: JSON.parse(facts.definition) as unknown,
        submitterRole: facts.submitter_role,
        maxAttempts: facts.max_attempts,
        timeoutSeconds: facts.timeout_seconds,
      },
    };
  }

  async heartbeat(lease: LeaseRef, expiresAt: number, now: number): Promise<Heartbeat> {
    const { results } = await this.#db
      .prepare(HEARTBEAT)
      .bind(lease.batchId, lease.grantId, lease.token, expiresAt, now)
      .all<{ status: string }>();
    const row = results[0];
    if (row === undefined) return { kind: "lost" };
    return row.status === "running" ? { kind: "held" } : { kind: "cancelled" };
  }

  async loadFiles(batchId: string): Promise<readonly BatchFile[]> {
    const { results } = await this.#db
      .prepare("SELECT path, content FROM batch_files WHERE batch_id = ?1 ORDER BY path, part")
      .bind(batchId)
      .all<{ path: string; content: string }>();
    const parts = new Map<string, string[]>();
    for (const { path, content } of results) parts.set(path, [...(parts.get(path) ?? []), content]);
    return [...parts].map(([path, contents]) => ({
      path,
      bytes: new Uint8Array(Buffer.concat(contents.map((content) => Buffer.from(content, "base64")))),
    }));
  }

  async #whyNothing(wake: ClaimRequest["wake"], leasesTaken: number): Promise<Claim> {
    if (leasesTaken > 0) return { kind: "empty" };
    const { results } = await this.#db
      .prepare("SELECT 1 AS taken FROM leases WHERE batch_id = ?1 AND grant_id = ?2")
      .bind(wake.batchId, wake.grantId)
      .all();
    return results.length > 0 ? { kind: "taken" } : { kind: "empty" };
  }
}
