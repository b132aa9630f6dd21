/**
 * The one mapping from refusals and faults to HTTP answers. Invariants: every error is `{code, message, request_id,
 * details?}`; a fault's text goes to the log, never to the client.
 */
import type { z } from "zod";
import { type Result, err } from "../domain/shared/result.ts";
import { type ApiRefusal, type ErrorBody, type ErrorCode, STATUS_BY_CODE } from "../protocol/errors.ts";

export function refuse(
  code: ErrorCode,
  message: string,
  details?: Readonly<Record<string, unknown>>,
): { readonly ok: false; readonly error: ApiRefusal } {
  return err({ code, message, ...(details === undefined ? {} : { details }) });
}

export function refusalResponse(refusal: ApiRefusal, requestId: string): Response {
  const { code, message, details } = refusal;
  const body: ErrorBody = { code, message, request_id: requestId, ...(details === undefined ? {} : { details }) };
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (code === "unauthorized") headers["www-authenticate"] = "Bearer";
  if (code === "overloaded") headers["retry-after"] = "1";
  return new Response(JSON.stringify(body), { status: STATUS_BY_CODE[code], headers });
}

/** The first problem in words, all of them (bounded) in `details.issues`. */
export function invalidRequest(error: z.ZodError, where: "body" | "query" | "path"): Result<never, ApiRefusal> {
  const issues = error.issues.slice(0, ISSUES_SHOWN_MAX).map((issue) => ({
    path: [where, ...issue.path.map(String)].join("."),
    message: describeIssue(issue),
  }));
  const first = issues[0];
  return refuse("invalid_request", `${first?.path ?? where}: ${first?.message ?? "is invalid"}`, { issues });
}

/** A body can hold thousands of bad items; the client needs to see a few. */
const ISSUES_SHOWN_MAX = 20;

/** What zod says of a union that has no words of its own. */
const NO_WORDS = "Invalid input";

/** What is allowed where zod's own sentence does not say it. */
function describeIssue(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_value") {
    return oneOf(issue.values);
  }
  // A schema that has words of its own for a field it refuses says why.
  if (issue.code === "unrecognized_keys" && issue.message.startsWith("Unrecognized key")) {
    return `unknown field ${issue.keys.map((key) => JSON.stringify(key)).join(", ")}`;
  }
  if (issue.code === "invalid_union") {
    if (issue.message !== NO_WORDS && !("options" in issue)) return issue.message;
    const branches = issue.errors.flatMap((branch) => branch.map((inner) => describeIssue(inner)));
    if (branches.length === 0 && "options" in issue) return oneOf(issue.options ?? []);
    return [...new Set(branches)].join(" or ") || issue.message;
  }
  return issue.message;
}

function oneOf(values: readonly unknown[]): string {
  const named = values.filter((value) => value !== undefined).map((value) => JSON.stringify(value));
  return `must be one of ${named.join(", ")}`;
}

/**
 * A thrown fault as a refusal. Platform faults that pass by themselves (an object reset by a deploy, an overloaded
 * object or database) are `overloaded`, so that clients try again; anything else is ours: `internal_error`.
 */
export function faultRefusal(fault: unknown): ApiRefusal {
  return isTransient(fault)
    ? { code: "overloaded", message: "The service is busy. Try again shortly." }
    : { code: "internal_error", message: "Something went wrong. The request id finds it in the log." };
}

const CAUSE_DEPTH_MAX = 8;
const TRANSIENT =
  /overloaded|reset because its code was updated|script has been upgraded|Network connection lost|caused object to be reset|too many requests queued|storage operation exceeded timeout|database is locked|SQLITE_BUSY/i;

function isTransient(fault: unknown): boolean {
  let at: unknown = fault;
  for (let depth = 0; depth < CAUSE_DEPTH_MAX && typeof at === "object" && at !== null; depth++) {
    const { overloaded, retryable, message, cause } = at as Record<string, unknown>;
    if (overloaded === true || retryable === true) return true;
    if (typeof message === "string" && TRANSIENT.test(message)) return true;
    at = cause;
  }
  return false;
}
