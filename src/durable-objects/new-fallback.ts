/**
 * Whether a run that ended by itself holds an answer that stands in for a failed model call: then it is an error and no
 * success (P5, R86). A mark that the thread had before the run is stale and tells nothing about this run: it is known by
 * its message's id.
 */
import { isAIMessage, type BaseMessage } from "@langchain/core/messages";
import type { PreRunMessageIds } from "../agent/graph/pre-run-messages.ts";
import { ERROR_FALLBACK_KEY } from "../domain/model-errors/fallback-answer.ts";
import type { RunError } from "../platform/durable-storage/run-store.ts";
import { findOwnMessage } from "./pre-run-messages.ts";

/** `values` is the state at the run's end. */
export async function findNewFallback(values: unknown, before: PreRunMessageIds): Promise<RunError | undefined> {
  const fresh = await findOwnMessage(values, before, isMarked);
  return fresh && toRunError(fresh);
}

function isMarked(message: BaseMessage): boolean {
  return isAIMessage(message) && message.additional_kwargs[ERROR_FALLBACK_KEY] === true;
}

/** People read the text; what the provider said is for whoever looks into it. */
function toRunError({ text, additional_kwargs: { error_type: type, error_detail: detail } }: BaseMessage): RunError {
  return {
    error: typeof type === "string" ? type : "ModelFailure",
    message: typeof detail === "string" && detail !== "" ? `${text} (${detail})` : text,
  };
}
