/**
 * Named places where a test may hold or kill Deputy: the port and its names. Owns no behaviour: who reaches a point asks
 * `failpoint?.(name, place)`, which is nothing at all in a deployment, where no failpoint is given.
 * A point stands between two commits, never inside a transaction.
 */
export const FAILPOINTS = [
  /** A model request is about to leave. */
  "model_request",
  /** The model answered; its answer is not committed. */
  "model_answered",
  /** A tool call's task runs; nothing of the call is noted or done. */
  "tool_not_started",
  /** The call is noted as started; the tool is about to act. */
  "tool_started",
  /** The tool answered; its result is not committed. */
  "tool_finished",
  /** Events of the outbox are about to go to D1. */
  "flush",
  /** A run's end is decided; status, event and last frame are not committed. */
  "terminal_commit",
  /** The graph of a cancelled run has stopped; its open calls are not settled. */
  "cancel",
  /** A run that is rolled back has ended; its rows and checkpoints are still there. */
  "rollback",
  /** Finished batch items are about to be settled. */
  "item_settle",
  /** A cancelled batch is terminal in D1; its thread has not ended it. */
  "batch_cancel",
] as const;

export type FailpointName = (typeof FAILPOINTS)[number];

export interface FailpointPlace {
  readonly threadId: string;
  /** Which agent, tool or item. */
  readonly detail?: string;
}

/** Resolves when the holder lets it go on; `undefined` when nothing is held there. */
export type Failpoint = (name: FailpointName, place: FailpointPlace) => Promise<void> | undefined;

/** A failpoint of one thread, as the parts that know no thread are given it. */
export type LocalFailpoint = (name: FailpointName, detail?: string) => Promise<void> | undefined;
