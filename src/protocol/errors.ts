/**
 * The error codes of the HTTP API and of refusals that cross RPC (contracts, "HTTP errors"). One mapping from code to
 * status serves every route; a code never changes its status.
 */
import { z } from "zod";
import type { Result } from "../domain/shared/result.ts";

export const STATUS_BY_CODE = {
  invalid_json: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  thread_busy: 409,
  already_exists: 409,
  idempotency_conflict: 409,
  not_cancellable: 409,
  version_conflict: 409,
  too_large: 413,
  invalid_request: 422,
  unsupported_option: 422,
  rate_limited: 429,
  internal_error: 500,
  auth_not_configured: 503,
  overloaded: 503,
} as const;

export type ErrorCode = keyof typeof STATUS_BY_CODE;

/** A refusal as it crosses RPC; the gateway adds the request id. */
export interface ApiRefusal {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The body of every error answer. */
export const errorBodySchema = z
  .object({
    code: z.enum(Object.keys(STATUS_BY_CODE) as [ErrorCode, ...ErrorCode[]]),
    message: z.string(),
    request_id: z.string(),
    details: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ ref: "Error" });
export type ErrorBody = z.infer<typeof errorBodySchema>;

/** What every RPC method of the thread object answers: thrown errors lose their class on the way, values do not. */
export type RpcResult<T> = Result<T, ApiRefusal>;
