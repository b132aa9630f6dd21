/**
 * Picks the steps out of a child's message history, each once (delegation-behaviour 1.7).
 * Owns the set of what was told: an assistant or tool message is a step, its id decides sameness, and its whole content
 * where it has none. There is no cursor, because it is given updates as well as whole histories: a history that was
 * rewritten repeats nothing, and what the rewrite added is told wherever it stands.
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
