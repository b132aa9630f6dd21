/**
 * The end of a run that was cancelled or failed: every call it left open gets a result, every delegation it left open is
 * settled, in one state update, so that no later run meets a dangling call (architecture section 5, Cancel).
 */
import { BaseMessage, isAIMessage, isToolMessage } from "@langchain/core/messages";
import type { BuiltGraph } from "../agent/graph-catalog.ts";
import { cancelCalls } from "../agent/graph/cancelled-calls.ts";
import { pendingCalls } from "../agent/graph/pending-calls.ts";
import type { ThreadState } from "../agent/thread-state/thread-state.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { ThreadContext } from "./thread-context.ts";

export async function cancelUnanswered(context: ThreadContext, run: RunRecord, built: BuiltGraph): Promise<void> {
  const config = { configurable: { ...built.configurable, run_id: run.runId } };
  const snapshot = await built.graph.getState(config);
  const state = snapshot.values as ThreadState;
  const committed = await messagesBehindHead(context);
  const answered = new Set(committed.filter((message) => isToolMessage(message)).map((result) => result.tool_call_id));
  const open = pendingCalls(state.messages ?? []).filter((call) => !answered.has(call.id));
  // Nothing is open, but the next run's input would drop what no checkpoint has taken in yet (P2).
  if (open.length === 0) {
    if (committed.length > 0) await built.graph.updateState(config, {}, answered.size > 0 ? "tools" : "model");
    return;
  }
  // Files commit with a call's own result; half of a script's work is not it.
  for (const call of open) context.staging.discard(call.id);
  const { messages, delegations } = cancelCalls(open, state.delegations ?? [], () => context.newId());
  await built.graph.updateState(config, { messages, ...(delegations.length === 0 ? {} : { delegations }) }, "tools");
}

/** Answers and results that committed and that no checkpoint holds yet: LangGraph applies them with an update. */
async function messagesBehindHead(context: ThreadContext): Promise<BaseMessage[]> {
  const head = await context.saver.getTuple({ configurable: { thread_id: context.threadId, checkpoint_ns: "" } });
  return (head?.pendingWrites ?? [])
    .filter(([, channel]) => channel === "messages")
    .flatMap(([, , value]) => (Array.isArray(value) ? (value as unknown[]) : [value]))
    .filter((message) => BaseMessage.isInstance(message))
    .filter((message) => isAIMessage(message) || isToolMessage(message));
}
