/**
 * Refusals of the seam. Callers route on `code`, never on the text (subagent-seam 1.4).
 */
export type SubagentErrorCode =
  | "DUPLICATE_PROVIDER"
  | "NO_PROVIDER"
  | "UNSUPPORTED_CAPABILITY"
  | "UNSUPPORTED_SCHEMA"
  | "DEPTH_EXCEEDED"
  | "NOT_RESUMABLE";

export class SubagentError extends Error {
  override readonly name = "SubagentError";
  readonly code: SubagentErrorCode;

  constructor(code: SubagentErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}
