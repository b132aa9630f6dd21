/**
 * From how a child run stopped to how the delegation ended. Owns the one mapping of stop reasons. Promise P5: what is
 * not positively completed with text is not completed, and an unknown reason is a failure.
 */
import { isBlank, type DelegationOutcome } from "./delegation-outcome.ts";
import { NO_RESPONSE_SENTINEL } from "./delegation-text.ts";

export const CANCELLED_BY_USER = "Cancelled by user";

export interface StoppedChild {
  /** The last non-empty text, possibly "". */
  readonly text: string;
  readonly stopReason: string;
  readonly diagnostic?: string | undefined;
}

export function decideOutcome(child: StoppedChild, maxTurns: number): DelegationOutcome {
  const { text, stopReason, diagnostic } = child;
  switch (stopReason) {
    case "completed":
      return isBlank(text) ? failed(child, NO_RESPONSE_SENTINEL) : { status: "completed", result: text };
    case "max-turns":
      return capped(child, "turn_capped", `Reached max_turns=${maxTurns}`);
    case "max-tokens":
      return capped(child, "token_capped", "Reached the token limit");
    case "aborted":
      return { status: "cancelled", result: text, error: diagnostic ?? CANCELLED_BY_USER };
    case "error":
      return failed(child, "The subagent failed");
    case "refusal":
      return failed(child, "The subagent refused the task");
    default:
      return failed(child, `The subagent stopped for an unknown reason: ${stopReason}`);
  }
}

function capped(child: StoppedChild, stopReason: "turn_capped" | "token_capped", error: string): DelegationOutcome {
  if (isBlank(child.text)) return { ...failed(child, error), stopReason };
  return { status: "completed", result: child.text, stopReason };
}

function failed({ text, diagnostic }: StoppedChild, fallback: string): DelegationOutcome {
  return { status: "failed", result: text, error: isBlank(diagnostic) ? fallback : diagnostic };
}
