/**
 * Which part of a history another conversation may start from: answers whose every call has its result.
 * A group is an assistant message and the results of its calls, which stand before the next assistant message. Invariants:
 * no call without a result and no result without a call is left; the order is kept; the input is not changed.
 */
import { AIMessage, type BaseMessage, isToolMessage } from "@langchain/core/messages";

/** Without groups that lack a result: a call nobody will answer, or one that is being answered now. */
export function withoutOpenCalls(messages: readonly BaseMessage[]): BaseMessage[] {
  return groupsOf(messages).flatMap(closedPart);
}

/** Up to the last complete group: what was asked after it has not been dealt with, so it is no completed turn. */
export function completedTurns(messages: readonly BaseMessage[]): BaseMessage[] {
  const closed = withoutOpenCalls(messages);
  const last = closed.findLastIndex((message) => AIMessage.isInstance(message) || isToolMessage(message));
  return closed.slice(0, last + 1);
}

/** Split in front of every assistant message; the first group may have none. */
function groupsOf(messages: readonly BaseMessage[]): BaseMessage[][] {
  const groups: BaseMessage[][] = [[]];
  for (const message of messages) {
    if (AIMessage.isInstance(message)) groups.push([]);
    groups.at(-1)?.push(message);
  }
  return groups;
}

function closedPart(group: readonly BaseMessage[]): BaseMessage[] {
  const called = group.filter((message) => AIMessage.isInstance(message)).flatMap((answer) => answer.tool_calls ?? []);
  const results = new Set(group.filter((message) => isToolMessage(message)).map((result) => result.tool_call_id));
  const isClosed = called.every(({ id }) => id !== undefined && results.has(id));
  const ids = new Set(called.map(({ id }) => id));
  return group.filter((message) => {
    if (AIMessage.isInstance(message)) return isClosed;
    return !isToolMessage(message) || (isClosed && ids.has(message.tool_call_id));
  });
}
