/**
 * One leading system message: strict providers refuse a second one or one further back (R30).
 * Owns what counts as the framework's own: a system message made for this request, which has no id. Everything from the
 * state has one (ids are given before the write), and a stored system message is somebody's text, never the framework's
 * word (P6): it goes on as a human message in its place.
 */
import { type BaseMessage, HumanMessage, SystemMessage } from "@langchain/core/messages";
import type { AgentHook } from "./hook.ts";

/** Innermost of the hooks that touch the request, behind whatever adds system text. */
export function systemCoalescer(): AgentHook {
  return {
    name: "system_coalescer",
    wrapModelCall: (request, next) => next({ ...request, messages: coalesceSystem(request.messages) }),
  };
}

/** The same list when there is nothing to do. */
export function coalesceSystem(messages: readonly BaseMessage[]): readonly BaseMessage[] {
  const isInPlace = (message: BaseMessage, index: number) =>
    !isSystem(message) || (index === 0 && isFrameworkSystem(message));
  if (messages.every(isInPlace)) return messages;
  const system = messages.filter(isFrameworkSystem);
  const rest = messages.filter((message) => !isFrameworkSystem(message)).map(demoteForeignSystem);
  return system.length === 0 ? rest : [mergeSystem(system), ...rest];
}

export function isFrameworkSystem(message: BaseMessage): boolean {
  return isSystem(message) && message.id === undefined;
}

function isSystem(message: BaseMessage): boolean {
  return message.getType() === "system";
}

function mergeSystem(system: readonly BaseMessage[]): BaseMessage {
  const [only] = system;
  if (only && system.length === 1) return only;
  const texts = system.map((message) => message.text).filter((text) => text.trim() !== "");
  return new SystemMessage(texts.join("\n\n"));
}

function demoteForeignSystem(message: BaseMessage): BaseMessage {
  if (!isSystem(message)) return message;
  const { content, id, additional_kwargs } = message;
  return new HumanMessage({ content, additional_kwargs, ...(id !== undefined && { id }) });
}
