/**
 * What commits together with LangGraph's writes (architecture section 4, Commits): the events that mirror them, the
 * staged files of the calls they answer, and the end of a delegation. Called by the saver inside its transaction, so a
 * crash leaves all of it or none.
 */
import { BaseMessage, isToolMessage, type ToolMessage } from "@langchain/core/messages";
import { usageOfAnswer } from "../agent/models/answer-usage.ts";
import { toDelegationKwargs } from "../domain/delegation/delegation-result.ts";
import { type SubagentEnd, toSubagentEnd } from "../domain/delegation/subagent-steps.ts";
import { type CallerUsage, LEAD_CALLER, subagentCaller } from "../domain/run/run-usage.ts";
import { isStep } from "../agent/subagents/step-capture.ts";
import type { WorkspaceStaging } from "../agent/tools/workspace.ts";
import type { CommitHook, WritesCommit } from "../platform/durable-storage/commit-hook.ts";
import type { DelegationRecord, DelegationStore } from "../platform/durable-storage/delegation-store.ts";
import type { ToolStartStore } from "../platform/durable-storage/tool-start-store.ts";
import type { EventOutbox } from "../platform/durable-storage/event-outbox.ts";
import type { RunEventDraft } from "../protocol/run-events.ts";
import { type Report, stepEvent } from "./step-event.ts";
import { messageEvent } from "./thread-log.ts";

/** LangGraph's pseudo node that writes a run's input, and the task it writes a command's update with: told at acceptance. */
const INPUT_NODE = "__start__";
const COMMAND_TASK = "00000000-0000-0000-0000-000000000000";

const ENDED_WITH_PARENT = "the subagent that delegated this ended first";

export interface CommitEventsPorts {
  readonly outbox: EventOutbox;
  readonly staging: WorkspaceStaging;
  readonly delegations: DelegationStore;
  readonly toolStarts: Pick<ToolStartStore, "delete">;
  /** The run being driven; `undefined` while state is updated outside a run. */
  readonly currentRunId: () => string | undefined;
  /** Removes the checkpoints of a child whose result is now the parent's. */
  readonly forgetChild: (checkpointNs: string) => void;
  /** A step of the run or of one of its children committed: the run's frames may be stored now. */
  readonly onStep: () => void;
  readonly now: () => number;
  /** Is told of a step that no event can be made of: the log then lacks it (R117). */
  readonly report: Report;
}

export class CommitEvents implements CommitHook {
  readonly #ports: CommitEventsPorts;

  constructor(ports: CommitEventsPorts) {
    this.#ports = ports;
  }

  onWrites(commit: WritesCommit): void {
    const messages = messagesOf(commit);
    for (const message of messages) {
      if (!isToolMessage(message)) continue;
      this.#ports.staging.commit(message.tool_call_id);
      this.#ports.toolStarts.delete(message.tool_call_id);
    }
    const runId = this.#ports.currentRunId();
    const isBrought = commit.taskPath.includes(INPUT_NODE) || commit.taskId === COMMAND_TASK;
    if (runId === undefined || messages.length === 0 || isBrought) return;
    const { drafts, usage } =
      commit.checkpointNs === "" ? this.#rootMirror(runId, messages) : this.#childMirror(commit, messages);
    if (drafts.length > 0) this.#ports.outbox.append(drafts, { now: this.#ports.now(), used: { runId, usage } });
  }

  onCheckpoint(): void {
    this.#ports.onStep();
  }

  #rootMirror(runId: string, messages: readonly BaseMessage[]): Mirror {
    const drafts = messages.flatMap((message) => {
      const told = messageEvent(runId, message);
      const ended = isToolMessage(message) ? this.#endDelegation(runId, message) : [];
      return told === undefined ? ended : [...ended, told];
    });
    return { drafts, usage: usageOf(LEAD_CALLER, messages) };
  }

  /** Steps of the child whose namespace this is; a nested child's end belongs to its parent child's results. */
  #childMirror(commit: WritesCommit, messages: readonly BaseMessage[]): Mirror {
    const delegation = this.#ports.delegations.findByNamespace(commit.checkpointNs);
    if (delegation === undefined) return { drafts: [], usage: [] };
    const captured = messages.filter(isStep);
    const ended = captured.filter(isToolMessage).flatMap((message) => this.#endDelegation(delegation.runId, message));
    const steps = captured.flatMap((message, index) => stepEvent(delegation, message, index, this.#ports.report));
    this.#ports.delegations.save({ ...delegation, steps: delegation.steps + captured.length });
    return { drafts: [...ended, ...steps], usage: usageOf(subagentCaller(delegation.subagentType), messages) };
  }

  #endDelegation(runId: string, message: ToolMessage): RunEventDraft[] {
    const delegation = this.#ports.delegations.find(message.tool_call_id);
    if (delegation === undefined) return [];
    const nested = this.#endNested(delegation);
    this.#ports.delegations.delete(delegation.taskId);
    this.#ports.forgetChild(delegation.checkpointNs);
    const content = toSubagentEnd(delegation.taskId, message.additional_kwargs, message.text);
    return content === undefined ? nested : [...nested, endDraft(runId, content)];
  }

  /** A child that was stopped tells no end of its own children: they ended with it, and the log must say so. */
  #endNested({ checkpointNs }: DelegationRecord): RunEventDraft[] {
    return this.#ports.delegations.nestedIn(checkpointNs).flatMap(({ taskId, runId }) => {
      this.#ports.delegations.delete(taskId);
      const outcome = { status: "cancelled", error: ENDED_WITH_PARENT } as const;
      const content = toSubagentEnd(taskId, toDelegationKwargs(outcome), "");
      return content === undefined ? [] : [endDraft(runId, content)];
    });
  }
}

function endDraft(runId: string, content: SubagentEnd): RunEventDraft {
  const metadata = { task_id: content.task_id };
  return { run_id: runId, event_type: "subagent.end", category: "subagent", content, metadata };
}

/** What a commit puts into the log, and what its answers used: each is committed once, so each is counted once. */
interface Mirror {
  readonly drafts: RunEventDraft[];
  readonly usage: readonly CallerUsage[];
}

function usageOf(caller: string, messages: readonly BaseMessage[]): readonly CallerUsage[] {
  return messages.flatMap((message) => usageOfAnswer(caller, message) ?? []);
}

function messagesOf(commit: WritesCommit): BaseMessage[] {
  return commit.writes
    .filter(([channel]) => channel === "messages")
    .flatMap(([, value]) => (Array.isArray(value) ? value : [value]))
    .filter((value) => BaseMessage.isInstance(value));
}
