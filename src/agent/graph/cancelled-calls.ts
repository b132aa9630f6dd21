/**
 * What an abandoned run leaves open, closed: each call without a result gets one that says so, each delegation that
 * stands as under way is settled, so that no later request meets a dangling call or is told to wait for nobody (P5).
 * Owns the words, and the close of a thread that no object watches: there the next input finds what is open.
 */
import { BaseMessage, isAIMessage, isToolMessage, ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { toDelegationKwargs } from "../../domain/delegation/delegation-result.ts";
import { toDelegationText } from "../../domain/delegation/delegation-text.ts";
import type { DelegationEntry, ThreadState } from "../thread-state/thread-state.ts";
import type { AgentGraph } from "./agent-graph.ts";
import { type IdentifiedToolCall, pendingCalls } from "./pending-calls.ts";
import { threadIdOf } from "./thread-id.ts";

export const RUN_ENDED = "the run ended before this call finished";

export interface ClosedCalls {
  readonly messages: readonly BaseMessage[];
  readonly delegations: readonly DelegationEntry[];
}

export function cancelCalls(
  open: readonly IdentifiedToolCall[],
  delegations: readonly DelegationEntry[],
  newId: () => string,
): ClosedCalls {
  const messages = open.map((call) => {
    const outcome = { status: "cancelled", error: RUN_ENDED } as const;
    const delegated = call.name === "task";
    return new ToolMessage({
      id: newId(),
      name: call.name,
      tool_call_id: call.id,
      status: "error",
      content: delegated ? toDelegationText(outcome) : `Cancelled: ${RUN_ENDED}.`,
      additional_kwargs: delegated ? toDelegationKwargs(outcome) : {},
    });
  });
  const ids = new Set(open.map((call) => call.id));
  const settled = delegations
    .filter((entry) => ids.has(entry.id) && entry.status === "in_progress")
    .map((entry) => ({ ...entry, status: "cancelled" as const, result_brief: RUN_ENDED }));
  return { messages, delegations: settled };
}

/** What a new input of the thread has to bring along; results that committed behind the last checkpoint are kept (P2). */
export async function closeAbandoned(
  graph: AgentGraph,
  config: RunnableConfig,
  newId: () => string,
): Promise<ClosedCalls> {
  const { checkpointer } = graph;
  if (!checkpointer || typeof checkpointer === "boolean" || threadIdOf(config) === undefined) return NOTHING_OPEN;
  const { values } = await graph.getState(config);
  const { messages = [], delegations = [] } = values as Partial<ThreadState>;
  const written = (await checkpointer.getTuple(config))?.pendingWrites ?? [];
  // The state shows them, but a new input drops what no checkpoint has taken in yet.
  const committed = writtenTo(written, "messages")
    .filter((value) => BaseMessage.isInstance(value))
    .filter((message) => isAIMessage(message) || isToolMessage(message));
  const answered = new Set(committed.filter((message) => isToolMessage(message)).map((result) => result.tool_call_id));
  const open = pendingCalls(messages).filter(({ id }) => !answered.has(id));
  const cancelled = cancelCalls(open, delegations, newId);
  return {
    messages: [...committed, ...cancelled.messages],
    delegations: [...(writtenTo(written, "delegations") as DelegationEntry[]), ...cancelled.delegations],
  };
}

const NOTHING_OPEN: ClosedCalls = { messages: [], delegations: [] };

function writtenTo(writes: readonly (readonly [string, string, unknown])[], channel: string): unknown[] {
  return writes.filter(([, name]) => name === channel).flatMap(([, , value]): unknown => value);
}
