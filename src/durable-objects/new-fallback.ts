/**
 * Whether a run that ended by itself holds an answer that stands in for a failed model call: then it is an error and no
 * success (P5, R86). A mark that the thread had before the run is stale and tells nothing about this run: it is known by
 * its message's id.
 */
import { isAIMessage, type BaseMessage } from "@langchain/core/messages";
import type { BuiltGraph } from "../agent/graph-catalog.ts";
import { ERROR_FALLBACK_KEY } from "../domain/model-errors/fallback-answer.ts";
import type { RunError, RunRecord } from "../platform/durable-storage/run-store.ts";

/** `values` is the state at the run's end. Loads the state before the run only when a mark is in sight. */
export async function findNewFallback(
  run: RunRecord,
  built: BuiltGraph,
  values: unknown,
): Promise<RunError | undefined> {
  const marked = messagesIn(values).filter(isMarked);
  if (marked.length === 0) return undefined;
  const before = await idsBefore(run, built);
  const fresh = marked.findLast(({ id }) => id === undefined || !before.has(id));
  return fresh && toRunError(fresh);
}

async function idsBefore({ baseCheckpointId }: RunRecord, { graph, configurable }: BuiltGraph): Promise<Set<string>> {
  if (baseCheckpointId === null) return new Set();
  const at = { configurable: { ...configurable, checkpoint_id: baseCheckpointId } };
  const { values } = await graph.getState(at);
  return new Set(messagesIn(values).flatMap(({ id }) => id ?? []));
}

function isMarked(message: BaseMessage): boolean {
  return isAIMessage(message) && message.additional_kwargs[ERROR_FALLBACK_KEY] === true;
}

/** An operator's own graph may have no messages, or something else of that name. */
function messagesIn(values: unknown): readonly BaseMessage[] {
  const messages: unknown = (values as { readonly messages?: unknown } | null | undefined)?.messages;
  return Array.isArray(messages) ? messages.filter((each) => isMessage(each)) : [];
}

function isMessage(value: unknown): value is BaseMessage {
  return value !== null && typeof value === "object" && "additional_kwargs" in value && "getType" in value;
}

/** People read the text; what the provider said is for whoever looks into it. */
function toRunError({ text, additional_kwargs: { error_type: type, error_detail: detail } }: BaseMessage): RunError {
  return {
    error: typeof type === "string" ? type : "ModelFailure",
    message: typeof detail === "string" && detail !== "" ? `${text} (${detail})` : text,
  };
}
