/**
 * The end of a run that was cancelled or failed: every call it left open gets a result, every delegation it left open is
 * settled, in one state update, so that no later run meets a dangling call (architecture section 5, Cancel).
 */
import { isAIMessage, isToolMessage, ToolMessage } from "@langchain/core/messages";
import type { BuiltGraph } from "../agent/graph-catalog.ts";
import { pendingCalls } from "../agent/graph/pending-calls.ts";
import type { ThreadState } from "../agent/thread-state/thread-state.ts";
import { toDelegationKwargs } from "../domain/delegation/delegation-result.ts";
import { toDelegationText } from "../domain/delegation/delegation-text.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { ThreadContext } from "./thread-context.ts";

export const REASON = "the run ended before this call finished";

export async function cancelUnanswered(context: ThreadContext, run: RunRecord, built: BuiltGraph): Promise<void> {
  const config = { configurable: { ...built.configurable, run_id: run.runId } };
  const snapshot = await built.graph.getState(config);
  const state = snapshot.values as ThreadState;
  const answered = await answeredByPendingWrites(context);
  const open = pendingCalls(state.messages ?? []).filter((call) => !answered.has(call.id));
  if (open.length === 0) return;
  // Files commit with a call's own result; half of a script's work is not it.
  for (const call of open) context.staging.discard(call.id);
  const messages = open.map((call) => {
    const outcome = { status: "cancelled", error: REASON } as const;
    const delegated = call.name === "task";
    return new ToolMessage({
      id: context.newId(),
      name: call.name,
      tool_call_id: call.id,
      status: "error",
      content: delegated ? toDelegationText(outcome) : `Cancelled: ${REASON}.`,
      additional_kwargs: delegated ? toDelegationKwargs(outcome) : {},
    });
  });
  const openIds = new Set(open.map((call) => call.id));
  const delegations = (state.delegations ?? [])
    .filter((entry) => openIds.has(entry.id) && entry.status === "in_progress")
    .map((entry) => ({ ...entry, status: "cancelled" as const, result_brief: REASON }));
  await built.graph.updateState(config, { messages, ...(delegations.length === 0 ? {} : { delegations }) }, "tools");
}

/** Calls whose result committed beside the open ones: LangGraph applies those writes with the update. */
async function answeredByPendingWrites(context: ThreadContext): Promise<Set<string>> {
  const head = await context.saver.getTuple({ configurable: { thread_id: context.threadId, checkpoint_ns: "" } });
  const results = (head?.pendingWrites ?? [])
    .filter(([, channel]) => channel === "messages")
    .flatMap(([, , value]) => (Array.isArray(value) ? (value as unknown[]) : [value]))
    .filter((message) => ToolMessage.isInstance(message));
  return new Set(
    results.filter((message) => isToolMessage(message) && !isAIMessage(message)).map((m) => m.tool_call_id),
  );
}
