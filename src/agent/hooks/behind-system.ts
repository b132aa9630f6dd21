/** Puts request-only messages where they belong: behind the leading system text, before the conversation. */
import type { BaseMessage } from "@langchain/core/messages";

export function behindSystem(messages: readonly BaseMessage[], added: readonly BaseMessage[]): readonly BaseMessage[] {
  const at = messages.findIndex((message) => message.getType() !== "system");
  const cut = at < 0 ? messages.length : at;
  return [...messages.slice(0, cut), ...added, ...messages.slice(cut)];
}
