/**
 * Where nobody can answer: a graph without a saver has nothing to wait in, and LangGraph's `interrupt()` throws there.
 * Owns telling that throw from a tool's own failure: it must end the agent with this reason (contracts, Delegation), not
 * become a result that a model reads and works around.
 */
export class HumanInputError extends Error {
  override readonly name = "HumanInputError";

  constructor() {
    super("human_input_unavailable: a tool asked for human input, which nobody can give here");
  }
}

/** LangGraph's error for an `interrupt()` without a saver. */
export function isUnanswerable(error: unknown): boolean {
  if (error instanceof HumanInputError) return true;
  return error instanceof Error && (error as { lc_error_code?: unknown }).lc_error_code === "MISSING_CHECKPOINTER";
}
