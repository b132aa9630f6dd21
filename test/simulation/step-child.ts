/**
 * Children of the simulated runs: the shipped executor, service, journal and admission over a child that is a list of
 * steps with checkpoints of its own. Owns what one `task` call of the lead's does; the lead's tool itself is not in it.
 */
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import type { GraphBinding } from "../../src/agent/graph-catalog.ts";
import type { ChatModel } from "../../src/agent/models/model.ts";
import { SubagentExecutor } from "../../src/agent/subagents/executor.ts";
import type { CheckedSubagentRequest, SubagentResult, SubagentRun } from "../../src/agent/subagents/provider.ts";
import { SubagentService } from "../../src/agent/subagents/subagent-service.ts";
import { systemTimers } from "../../src/agent/subagents/timers.ts";
import { toDelegationKwargs } from "../../src/domain/delegation/delegation-result.ts";
import { type ChildState, StepCheckpoints } from "./step-state.ts";
import { aborted, type StepGraphPorts } from "./step-ports.ts";

export interface Call {
  /** The run that drives. */
  readonly runId: string;
  readonly threadId: string;
  readonly taskId: string;
  readonly steps: number;
  readonly signal: AbortSignal;
}

/** Longer than a child works, shorter than an answer may take: some time out. */
const TIMEOUT_SECONDS = 60;
const PROVIDER = "steps";

const MODEL: ChatModel = {
  name: "simulated",
  provider: "simulated",
  generate: () => Promise.reject(new Error("the simulated child asks the world")),
};

export class StepChildren {
  readonly #ports: StepGraphPorts;
  readonly #binding: GraphBinding;

  constructor(ports: StepGraphPorts, binding: GraphBinding) {
    this.#ports = ports;
    this.#binding = binding;
  }

  /** The result as it is to be committed. */
  async delegate({ runId, threadId, taskId, steps, signal }: Call): Promise<ToolMessage> {
    const { ledger } = this.#ports;
    const configurable = { thread_id: threadId, checkpoint_ns: namespaceOf(taskId), run_id: runId };
    ledger.startTask(runId, taskId);
    const outcome = await this.#executor(runId, steps).run({
      taskId,
      description: taskId,
      prompt: "go",
      agent: { name: "stepper", systemPrompt: "", model: MODEL, tools: [], hooks: [], maxTurns: 100 },
      provider: PROVIDER,
      timeoutSeconds: TIMEOUT_SECONDS,
      parent: { name: "lead", depth: 0, config: { configurable }, services: this.#binding.services },
      signal,
      emit: () => undefined,
    });
    const content = outcome.status === "completed" ? (outcome.result ?? "") : `not completed: ${outcome.error}`;
    return new ToolMessage({
      id: `result of ${taskId}`,
      tool_call_id: taskId,
      content,
      additional_kwargs: toDelegationKwargs(outcome),
    });
  }

  #executor(runId: string, steps: number): SubagentExecutor {
    const service = new SubagentService({ newId: this.#ports.newId, reportFault: () => undefined });
    service.register({
      name: PROVIDER,
      capabilities: { outputSchema: false, depthLimit: false, toolFilter: false, persona: false },
      inheritsParentContext: false,
      start: async (request) => this.#start(request, runId, steps),
    });
    const { admission, journal } = this.#binding;
    return new SubagentExecutor({ service, admission, journal, timers: systemTimers });
  }

  #start(request: CheckedSubagentRequest, runId: string, steps: number): SubagentRun {
    const { ledger, process } = this.#ports;
    // The slot is granted by now.
    ledger.hold(process, this.#binding.admission.snapshot());
    const stop = new AbortController();
    const signal = AbortSignal.any([request.signal, stop.signal]);
    const driven = this.#drive(request, { runId, steps, signal });
    const stopped = driven.catch((error: unknown): SubagentResult => {
      if (!signal.aborted) throw error;
      return { output: [], stopReason: "aborted" };
    });
    return {
      id: request.id,
      result: stopped,
      cancel: () => stop.abort(),
      dispose: async () => {
        stop.abort();
        await stopped.catch(() => undefined);
      },
    };
  }

  async #drive(
    { id: taskId, parent, onMessage }: CheckedSubagentRequest,
    { runId, steps, signal }: { runId: string; steps: number; signal: AbortSignal },
  ): Promise<SubagentResult> {
    const { world, ledger, process, newId } = this.#ports;
    const threadId = String(parent.config.configurable?.["thread_id"]);
    const place = { thread_id: threadId, checkpoint_ns: namespaceOf(taskId) };
    const checkpoints = new StepCheckpoints<ChildState>({ world, newId, saver: this.#binding.saver }, place);
    let head = (await checkpoints.head()) ?? (await checkpoints.put(undefined, { done: 0 }, "input"));
    while (head.state.done < steps) {
      signal.throwIfAborted();
      const part = `${taskId}#${head.state.done}`;
      const writer = `${head.id}-task`;
      if (!head.writes.some(([task]) => task === writer)) {
        ledger.execute(process, runId, part);
        const answer = world.effect(process, "child", () => `answer ${part}`);
        const message = new AIMessage({ id: part, content: await Promise.race([answer, aborted(signal)]) });
        await checkpoints.putWrites(head, [["messages", [message]]], writer);
        ledger.commit(process, runId, part);
        onMessage?.(message, "new");
      }
      head = await checkpoints.put(head, { done: head.state.done + 1 }, "loop");
    }
    return { output: [{ type: "text", text: `result of ${taskId}` }], stopReason: "completed" };
  }
}

/** As a tool call's own task is named. */
export function namespaceOf(taskId: string): string {
  return `tools:${taskId}`;
}
