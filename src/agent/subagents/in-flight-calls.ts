/**
 * The model and tool calls of a child that have not returned. LangGraph ends a stream at its abort and leaves what ignores
 * the signal running; a child is quiescent only when that has returned too (subagent-seam 1.7).
 */
import type { AgentHook } from "../hooks/hook.ts";

export class InFlightCalls {
  readonly #calls = new Set<Promise<unknown>>();
  /** Stands outermost in the child's chain. */
  readonly hook: AgentHook = {
    name: "in_flight_calls",
    wrapModelCall: (request, next) => this.#follow(next(request)),
    wrapToolCall: (request, next) => this.#follow(next(request)),
  };

  /** Never rejects: what a call came to is told where it was made. */
  async returned(): Promise<void> {
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls);
  }

  async #follow<T>(call: Promise<T>): Promise<T> {
    this.#calls.add(call);
    try {
      return await call;
    } finally {
      this.#calls.delete(call);
    }
  }
}
