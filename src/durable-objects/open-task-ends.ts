/**
 * The last `task_*` events of delegations that their run's end leaves open: a card that a client shows must not stay so.
 * Whoever ends the run asks before it settles the open calls, which closes the delegations with them.
 */
import { RUN_ENDED } from "../agent/graph/cancelled-calls.ts";
import { toTerminalTaskEvent } from "../domain/delegation/task-events.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { ThreadContext } from "./thread-context.ts";

/** The data of one `custom` frame each; `told` are tasks whose terminal event was sent. */
export function openTaskEnds(context: ThreadContext, run: RunRecord, told?: ReadonlySet<string>): string[] {
  if (!run.command.body.stream_mode.includes("custom")) return [];
  const open = context.delegations.ofRun(run.runId).filter(({ taskId }) => told?.has(taskId) !== true);
  return open.map(({ taskId }) =>
    JSON.stringify(toTerminalTaskEvent(taskId, { status: "cancelled", error: RUN_ENDED })),
  );
}
