/**
 * The delegation journal over the object's storage: `subagent.start` and the child's namespace, written in one
 * transaction and once per task id, also when recovery starts the `task` call again; and the steps of a child that has no
 * checkpoints here, each with its number.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { usageOfAnswer } from "../agent/models/answer-usage.ts";
import { isStep } from "../agent/subagents/step-capture.ts";
import type { DelegationJournal, DelegationStart } from "../agent/subagents/delegation-journal.ts";
import { invariant } from "../domain/shared/assert.ts";
import { toSubagentStart } from "../domain/delegation/subagent-steps.ts";
import { subagentCaller } from "../domain/run/run-usage.ts";
import type { DelegationStore } from "../platform/durable-storage/delegation-store.ts";
import type { EventOutbox } from "../platform/durable-storage/event-outbox.ts";
import { type Report, stepEvent } from "./step-event.ts";

export interface ThreadJournalPorts {
  readonly storage: DurableObjectStorage;
  readonly delegations: DelegationStore;
  readonly outbox: EventOutbox;
  readonly currentRunId: () => string | undefined;
  readonly now: () => number;
  readonly report: Report;
}

export class ThreadDelegationJournal implements DelegationJournal {
  readonly #ports: ThreadJournalPorts;
  readonly #watchers = new Map<string, () => void>();

  constructor(ports: ThreadJournalPorts) {
    this.#ports = ports;
  }

  started({ taskId, description, subagentType, checkpointNs }: DelegationStart): "recorded" | "already_recorded" {
    const { storage, delegations, outbox } = this.#ports;
    const known = delegations.find(taskId);
    const runId = this.#ports.currentRunId();
    invariant(runId !== undefined, `delegation '${taskId}' started outside a run`);
    if (known !== undefined) {
      // Its run waited for an answer, and another one brought it.
      if (known.runId !== runId) delegations.save({ ...known, runId });
      return "already_recorded";
    }
    storage.transactionSync(() => {
      delegations.save({ taskId, runId, subagentType, checkpointNs, steps: 0, cancelled: false });
      const content = toSubagentStart(taskId, description);
      outbox.append(
        [{ run_id: runId, event_type: "subagent.start", category: "subagent", content, metadata: { task_id: taskId } }],
        { now: this.#ports.now() },
      );
    });
    return "recorded";
  }

  stepped(taskId: string, message: BaseMessage): void {
    const { storage, delegations, outbox, report } = this.#ports;
    const delegation = delegations.find(taskId);
    // Its result has committed, or its run has ended: the log has its end.
    if (delegation === undefined || !isStep(message)) return;
    storage.transactionSync(() => {
      const { runId, subagentType, steps } = delegation;
      delegations.save({ ...delegation, steps: steps + 1 });
      const used = usageOfAnswer(subagentCaller(subagentType), message);
      outbox.append(stepEvent(delegation, message, 0, report), {
        now: this.#ports.now(),
        used: { runId, usage: used === undefined ? [] : [used] },
      });
    });
  }

  isCancelled(taskId: string): boolean {
    return this.#ports.delegations.find(taskId)?.cancelled === true;
  }

  watchCancel(taskId: string, onCancel: () => void): () => void {
    this.#watchers.set(taskId, onCancel);
    return () => {
      // A call that recovery started again watches the same id: its watcher is not this one's to remove.
      if (this.#watchers.get(taskId) === onCancel) this.#watchers.delete(taskId);
    };
  }

  /** True when the delegation is in flight: the request to end it is stored, then its child is told. */
  requestCancel(runId: string, taskId: string): boolean {
    const delegation = this.#ports.delegations.find(taskId);
    if (delegation === undefined || delegation.runId !== runId) return false;
    if (!delegation.cancelled) this.#ports.delegations.save({ ...delegation, cancelled: true });
    this.#watchers.get(taskId)?.();
    return true;
  }
}
