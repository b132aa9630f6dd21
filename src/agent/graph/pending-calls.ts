/**
 * Where a turn stands, read from its messages alone: which calls wait for a result, and whether a result ended the turn.
 */
import { isAIMessage, isHumanMessage, isToolMessage } from "@langchain/core/messages";
import type { AIMessage, BaseMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";

export type IdentifiedToolCall = ToolCall & { id: string };

/** Set by a tool whose result ends the turn: the model is not called again. */
export const ENDS_TURN_KEY = "deputy_ends_turn";

function isIdentified(call: ToolCall): call is IdentifiedToolCall {
  return typeof call.id === "string" && call.id !== "";
}

function lastAnswerIndex(messages: readonly BaseMessage[]): number {
  return messages.findLastIndex((message) => isAIMessage(message));
}

/** Calls of the last answer that no later message answers, in call order. */
export function pendingCalls(messages: readonly BaseMessage[]): IdentifiedToolCall[] {
  const index = lastAnswerIndex(messages);
  if (index < 0) return [];
  const answer = messages[index] as AIMessage;
  const answered = new Set(
    messages
      .slice(index + 1)
      .filter(isToolMessage)
      .map((result) => result.tool_call_id),
  );
  return (answer.tool_calls ?? []).filter(isIdentified).filter((call) => !answered.has(call.id));
}

function isVisibleHuman(message: BaseMessage): boolean {
  return isHumanMessage(message) && message.additional_kwargs["hide_from_ui"] !== true;
}

/** True when the last group of results holds a turn-ending one and no user has spoken since. */
export function turnHasEnded(messages: readonly BaseMessage[]): boolean {
  const since = messages.slice(lastAnswerIndex(messages) + 1);
  if (since.some(isVisibleHuman)) return false;
  return since.some((message) => isToolMessage(message) && message.additional_kwargs[ENDS_TURN_KEY] === true);
}
