/**
 * Runs one interactive delegation: acceptance, admission, the child, one terminal transition (architecture section 8).
 * Owns the order of these and the `task_*` events. Invariants: `task_started` once per task id, recovery included; what
 * a delegation was given is read once; every `task_running` precedes the terminal event; a refused admission ends before
 * any model call; the slot is released once, when the child is quiescent.
 */
import type { BaseMessage } from "@langchain/core/messages";
import type { AdmissionErrorCode, DelegationOutcome } from "../../domain/delegation/delegation-outcome.ts";
import { toTerminalTaskEvent, type TaskEvent } from "../../domain/delegation/task-events.ts";
import { DelegationExecution } from "./delegation-execution.ts";
import type { DelegationJournal } from "./delegation-journal.ts";
import { toLiveStep } from "./live-step.ts";
import type { ChildAgent, DelegatingAgent, MessageOrigin } from "./provider.ts";
import type { SlotSource } from "./run-slots.ts";
import type { SubagentService } from "./subagent-service.ts";
import type { Timers } from "./timers.ts";

export interface ExecutorPorts {
  readonly service: SubagentService;
  readonly admission: SlotSource;
  readonly journal: DelegationJournal;
  readonly timers: Timers;
}

export interface Delegation {
  /** The tool-call id. */
  readonly taskId: string;
  readonly description: string;
  readonly prompt: string;
  readonly agent: ChildAgent;
  readonly provider: string;
  readonly timeoutSeconds: number;
  readonly parent: DelegatingAgent;
  /** The delegation whose child makes this call; absent for the lead. */
  readonly parentTaskId?: string;
  /** The run's: its abort cancels the delegation. */
  readonly signal: AbortSignal;
  readonly emit: (event: TaskEvent) => void;
}

export class SubagentExecutor {
  readonly #ports: ExecutorPorts;

  constructor(ports: ExecutorPorts) {
    this.#ports = ports;
  }

  /** Rejects only with LangGraph's own signals and faults of the journal. */
  async run(given: Delegation): Promise<DelegationOutcome> {
    // One configuration from here to the end (R68): a delegation may wait for minutes, and who gave it may go on with it.
    const delegation = { ...given, agent: snapshotOf(given.agent) };
    const { taskId, agent, timeoutSeconds, signal } = delegation;
    const { timers, journal } = this.#ports;
    const execution = new DelegationExecution({
      agentName: agent.name,
      model: agent.model,
      maxTurns: agent.maxTurns,
      timeoutMs: timeoutSeconds * 1_000,
      timers,
    });
    const onAbort = (): void => void execution.cancel();
    const unwatch = journal.watchCancel?.(taskId, onAbort);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const accepted = await this.#accept(delegation);
      if (signal.aborted || (await journal.isCancelled(taskId))) execution.cancel();
      else if (accepted === "already_recorded" && this.#startsOnce(delegation)) execution.settle(NOT_REPEATED);
      else this.#admit(delegation, execution).catch((error: unknown) => execution.fail(error));
      const outcome = await execution.settled;
      delegation.emit(toTerminalTaskEvent(taskId, outcome));
      return outcome;
    } finally {
      signal.removeEventListener("abort", onAbort);
      unwatch?.();
    }
  }

  #startsOnce({ provider }: Delegation): boolean {
    return this.#ports.service.find(provider)?.startsOnce === true;
  }

  async #accept({ taskId, description, agent, parent, emit }: Delegation): Promise<"recorded" | "already_recorded"> {
    const checkpointNs: unknown = parent.config.configurable?.["checkpoint_ns"];
    const recorded = await this.#ports.journal.started({
      taskId,
      description,
      subagentType: agent.name,
      modelName: agent.model.name,
      checkpointNs: typeof checkpointNs === "string" ? checkpointNs : "",
    });
    if (recorded === "recorded") {
      emit({ type: "task_started", task_id: taskId, description, model_name: agent.model.name });
    }
    return recorded;
  }

  async #admit(delegation: Delegation, execution: DelegationExecution): Promise<void> {
    const { taskId, parentTaskId } = delegation;
    const nested = parentTaskId === undefined ? {} : { parentTaskId };
    const admitted = await this.#ports.admission.acquire({ taskId, signal: execution.signal, ...nested });
    if (!admitted.ok) {
      if (admitted.error !== "cancelled") execution.settle(toRefusal(admitted.error));
      return;
    }
    try {
      if (!execution.isSettled) await execution.drive(() => this.#start(delegation, execution));
    } finally {
      admitted.value.release();
    }
  }

  #start(delegation: Delegation, execution: DelegationExecution) {
    const { taskId, description, prompt, agent, parent, provider, emit } = delegation;
    let index = 0;
    const onMessage = (message: BaseMessage, origin: MessageOrigin): void => {
      if (execution.isSettled) return;
      index += 1;
      execution.tokens.record(message);
      if (origin === "restored") return;
      if (this.#startsOnce(delegation)) this.#ports.journal.stepped?.(taskId, message);
      emit({
        type: "task_running",
        task_id: taskId,
        message: toLiveStep(message),
        message_index: index,
        total_messages: index,
        usage: execution.tokens.total(),
        model_name: agent.model.name,
      });
    };
    return this.#ports.service.start(provider, {
      id: taskId,
      label: description,
      prompt,
      agent: { ...agent, model: execution.tokens.watch(agent.model) },
      parent,
      signal: execution.signal,
      onMessage,
    });
  }
}

/** Models and tools are shared on purpose; which ones they are is not. */
function snapshotOf(agent: ChildAgent): ChildAgent {
  return { ...agent, tools: [...agent.tools], hooks: [...agent.hooks] };
}

/** Whether the child had begun before the crash is not known, so neither is what it did. */
const NOT_REPEATED: DelegationOutcome = {
  status: "failed",
  error:
    "The process restarted while this was delegated, and the connection to the agent was lost. What the agent did is " +
    "unknown, so it is not asked a second time: check before you delegate this again",
};

const REFUSAL_TEXTS: Record<AdmissionErrorCode, string> = {
  admission_rejected: "No subagent slot is free and waiting is disabled; try again later or do the work yourself",
  admission_queue_full: "Too many subagents are waiting already; try again later or do the work yourself",
  admission_timeout: "No subagent slot became free in time; try again later or do the work yourself",
};

function toRefusal(errorCode: AdmissionErrorCode): DelegationOutcome {
  return { status: "failed", error: REFUSAL_TEXTS[errorCode], errorCode };
}
