/**
 * Messages to a child that is running: they wait for its next model turn and stand in its history from then on.
 * Owns the wait. Invariants: in the order they were sent; each is delivered once or refused, never dropped silently. In
 * memory only: what waits when the process dies is gone, and so is the promise its sender held.
 */
import { HumanMessage } from "@langchain/core/messages";
import type { AgentHook } from "../hooks/hook.ts";
import { SubagentError } from "./subagent-error.ts";

/** Nobody steers by more at once; past it the sender is in a loop. */
export const STEERING_MESSAGES_MAX = 32;

interface WaitingMessage {
  readonly content: string;
  readonly delivery: PromiseWithResolvers<void>;
}

export class SteeringQueue {
  readonly hook: AgentHook;
  #waiting: WaitingMessage[] = [];
  #closedBecause: string | undefined;

  constructor(newId: () => string) {
    this.hook = {
      name: "steering",
      beforeModel: () => {
        const messages = this.#take().map((content) => new HumanMessage({ id: newId(), content }));
        return messages.length === 0 ? undefined : { messages };
      },
    };
  }

  /** Resolves when a turn of the child takes it; rejects `NOT_RESUMABLE` when there will be none. */
  async send(content: string): Promise<void> {
    if (this.#closedBecause !== undefined) throw refusal(this.#closedBecause);
    if (this.#waiting.length >= STEERING_MESSAGES_MAX) {
      throw new RangeError(`${STEERING_MESSAGES_MAX} messages wait for the child's next turn already`);
    }
    const delivery = Promise.withResolvers<void>();
    this.#waiting.push({ content, delivery });
    await delivery.promise;
  }

  /** Refuses what waits and what comes. */
  close(reason: string): void {
    this.#closedBecause = reason;
    for (const { delivery } of this.#waiting.splice(0)) delivery.reject(refusal(reason));
  }

  #take(): readonly string[] {
    return this.#waiting.splice(0).map(({ content, delivery }) => {
      delivery.resolve();
      return content;
    });
  }
}

function refusal(reason: string): SubagentError {
  return new SubagentError("NOT_RESUMABLE", reason);
}
