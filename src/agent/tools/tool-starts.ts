/**
 * The port that remembers which calls have been started: what `once` and `ask` tools need to know after a crash.
 * A note outlives the process and is removed in the transaction that commits the call's result, so a call with a note
 * was started and nobody knows what became of it. `safe` calls are never noted.
 */
import type { ToolRecovery } from "./tool.ts";

export interface StartingCall {
  readonly toolCallId: string;
  readonly tool: string;
  readonly recovery: Exclude<ToolRecovery, "safe">;
  readonly args: Readonly<Record<string, unknown>>;
  /** LangGraph's namespace of the call's task: what is under a child's goes with the child. */
  readonly checkpointNs: string;
}

export interface KnownStarts {
  /** Executions before this one whose outcome nobody knows. */
  readonly earlier: number;
  /** The same for every execution of this call, and for no other call. */
  readonly idempotencyKey: string;
}

export interface ToolStarts {
  /** Writes nothing. */
  look(call: StartingCall): KnownStarts;
  /** Counts one more execution. Durable when it resolves: the tool acts after that. */
  note(call: StartingCall): Promise<void>;
}
