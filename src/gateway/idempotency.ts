/**
 * The `Idempotency-Key` header of creates: runs and batches read it alike. Owns its shape and what a body is compared by;
 * which create a key was used for is kept by the thread's object.
 */
import { ok, type Result } from "../domain/shared/result.ts";
import { bodyHash } from "../platform/body-hash.ts";
import { submissionKeySchema } from "../protocol/batches.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import type { RunIdempotency } from "../protocol/thread-rpc.ts";
import { refuse } from "./errors.ts";

/** As `/openapi.json` tells it on every route that starts a run. */
export const IDEMPOTENCY_HEADER = {
  "Idempotency-Key": "The same key and body answer the same run; another body is a conflict.",
} as const;

export function idempotencyKey(headers: Headers): Result<string | null, ApiRefusal> {
  const given = headers.get("idempotency-key");
  if (given === null) return ok(null);
  const parsed = submissionKeySchema.safeParse(given);
  if (parsed.success) return ok(parsed.data);
  return refuse("invalid_request", `Idempotency-Key: ${parsed.error.issues[0]?.message ?? "is invalid"}`);
}

/** Of the body as it was sent: what the server adds to it may differ from one try to the next. */
export function runIdempotency(headers: Headers, sent: unknown): Result<RunIdempotency | undefined, ApiRefusal> {
  const key = idempotencyKey(headers);
  if (!key.ok) return key;
  return ok(key.value === null ? undefined : { key: key.value, body_hash: bodyHash(sent) });
}
