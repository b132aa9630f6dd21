/**
 * Picks the steps out of a child's message history, each once (delegation-behaviour 1.7).
 * Owns the cursor and the index. An assistant or tool message is a step; ids decide sameness, and a history that shrank
 * (it was rewritten) moves the cursor back without telling anything twice.
 */
import { AIMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import type { StepMessage } from "../../domain/delegation/subagent-steps.ts";

export class StepCapture {
  readonly #seen = new Set<string>();

  /** The steps of `messages` that were not captured before, in order. */
  capture(messages: readonly BaseMessage[]): readonly BaseMessage[] {
    return messages.filter((message) => {
      if (!isStep(message)) return false;
      const key = message.id ?? JSON.stringify(message.toDict());
      if (this.#seen.has(key)) return false;
      this.#seen.add(key);
      return true;
    });
  }
}

export function isStep(message: BaseMessage): boolean {
  return AIMessage.isInstance(message) || ToolMessage.isInstance(message);
}

/** What `toSubagentStep` takes; `undefined` for a message that is no step. */
export function toStepMessage(message: BaseMessage): StepMessage | undefined {
  if (ToolMessage.isInstance(message)) {
    return { kind: "tool", text: message.text, toolName: message.name };
  }
  if (!AIMessage.isInstance(message)) return undefined;
  const calls = (message as AIMessage).tool_calls ?? [];
  return { kind: "ai", text: message.text, toolCalls: calls.map(({ name, args }) => ({ name, args })) };
}
