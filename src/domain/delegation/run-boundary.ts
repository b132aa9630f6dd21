/**
 * Where a run begins in its thread's messages (delegation-behaviour 5.3), so that what older runs dispatched is never
 * counted as this run's. Owns the decision over plain shapes. A hidden Human is the framework's own note, stored in the
 * middle of a run: it begins none.
 */
export interface BoundaryMessage {
  readonly id: string | undefined;
  readonly isHuman: boolean;
  readonly isHidden: boolean;
  /** The run a Human was tagged with by whoever sent it. */
  readonly runId: string | undefined;
}

/**
 * The index of the run's first message; the length of the list when none is its own. `preRunIds`: ids of the messages
 * that stood before the run, `undefined` when nobody knows.
 */
export function findRunStart(
  messages: readonly BoundaryMessage[],
  runId: string | undefined,
  preRunIds: ReadonlySet<string> | undefined,
): number {
  if (runId === undefined) return 0;
  const at = messages.findLastIndex((message) => message.isHuman && !message.isHidden);
  const human = messages[at];
  if (human !== undefined && beganRun(human, runId, preRunIds)) return at + 1;
  if (preRunIds === undefined) return messages.length;
  return messages.findLastIndex(({ id }) => id !== undefined && preRunIds.has(id)) + 1;
}

function beganRun(human: BoundaryMessage, runId: string, preRunIds: ReadonlySet<string> | undefined): boolean {
  if (human.runId !== undefined) return human.runId === runId;
  return preRunIds === undefined || human.id === undefined || !preRunIds.has(human.id);
}
