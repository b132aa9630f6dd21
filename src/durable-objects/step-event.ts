/**
 * One message of a child as its `subagent.step` event (delegation-behaviour 1.7), however it came: with a commit of the
 * child's graph, or from a child of another process. A message that no event can be made of is reported, never stored half.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { toStepMessage } from "../agent/subagents/step-capture.ts";
import { toSubagentStep } from "../domain/delegation/subagent-steps.ts";
import type { DelegationRecord } from "../platform/durable-storage/delegation-store.ts";
import type { RunEventDraft } from "../protocol/run-events.ts";

export type Report = (what: string, details: Readonly<Record<string, unknown>>) => void;

/** The delegation's step after `before` further ones; none when it is malformed. */
export function stepEvent(
  { taskId, runId, steps }: DelegationRecord,
  message: BaseMessage,
  before: number,
  report: Report,
): RunEventDraft[] {
  const index = steps + before;
  const step = toSubagentStep(taskId, index, toStepMessage(message));
  if (!step.ok) {
    report("subagent step refused", { ...step.error, run_id: runId, task_id: taskId, message_index: index });
    return [];
  }
  const metadata = { task_id: taskId, message_index: index };
  return [{ run_id: runId, event_type: "subagent.step", category: "subagent", content: step.value, metadata }];
}
