/**
 * The one message that crosses a queue: a wake. It offers an ordinal range of a batch and carries the thread's grant.
 * PERSISTED: in flight across deploys, so `v` stays compatible one version back. Never carries prompts or results.
 */
import { z } from "zod";
import type { Wake } from "../domain/batch/batch.ts";

export const batchWakeSchema = z.strictObject({
  v: z.literal(1),
  batch_id: z.string().min(1),
  owner: z.string().min(1),
  thread_id: z.string().min(1),
  /** First ordinal offered, inclusive. */
  from: z.int().min(0),
  /** One past the last ordinal offered. */
  to: z.int().min(0),
  grant_id: z.string().min(1),
  /** How many items the grant lets run at once; the consumer claims no more. */
  slots: z.int().min(1).max(64),
  /** Milliseconds since the epoch; past it the grant is void and nothing may be claimed under it. */
  expires_at: z.int(),
});

export type BatchWake = z.infer<typeof batchWakeSchema>;

export function toBatchWake(wake: Wake): BatchWake {
  return {
    v: 1,
    batch_id: wake.batchId,
    owner: wake.owner,
    thread_id: wake.threadId,
    from: wake.from,
    to: wake.to,
    grant_id: wake.grantId,
    slots: wake.slots,
    expires_at: wake.expiresAt,
  };
}

/** `undefined` for anything else: a message of another version, or none of ours. */
export function parseBatchWake(body: unknown): Wake | undefined {
  const parsed = batchWakeSchema.safeParse(body);
  if (!parsed.success) return undefined;
  const { batch_id, owner, thread_id, from, to, grant_id, slots, expires_at } = parsed.data;
  return { batchId: batch_id, owner, threadId: thread_id, from, to, grantId: grant_id, slots, expiresAt: expires_at };
}
