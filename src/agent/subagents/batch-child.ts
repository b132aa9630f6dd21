/**
 * Runs one attempt of one batch item: the executor's core without admission (the wake carries the grant) and without a
 * checkpointer (the unit of redo is the item). Owns nothing persistent; leases and settles are the consumer's.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { DelegationUsage } from "../../domain/delegation/delegation-outcome.ts";
import type { SubagentStatus, SubagentStopReason } from "../../domain/delegation/status-contract.ts";
import type { AgentServices } from "../graph/agent-services.ts";
import type { AgentHook } from "../hooks/hook.ts";
import type { ModelCatalog } from "../models/model.ts";
import type { Tool } from "../tools/tool.ts";
import { childPersona } from "./child-persona.ts";
import { DELEGATION_TOOL_NAMES, filterTools, selectChildTools } from "./child-tools.ts";
import { DelegationExecution } from "./delegation-execution.ts";
import type { ChildAgent } from "./provider.ts";
import { remoteChild } from "./remote-child.ts";
import type { SubagentDefinition } from "./subagent-definition.ts";
import type { SubagentService } from "./subagent-service.ts";
import { systemTimers, type Timers } from "./timers.ts";

export interface BatchChild {
  /** Identifies the attempt in metadata and callbacks. */
  readonly taskId: string;
  /** The batch's snapshot. */
  readonly definition: SubagentDefinition;
  readonly prompt: string;
  readonly models: ModelCatalog;
  /** All tools an item may have; the definition narrows them. */
  readonly tools: readonly Tool[];
  readonly hooks: readonly AgentHook[];
  /** Scratch workspace included. */
  readonly services: AgentServices;
  readonly service: SubagentService;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly config?: RunnableConfig;
  readonly timers?: Timers;
}

export interface BatchChildOutcome {
  readonly status: SubagentStatus;
  readonly result: string | null;
  readonly error: string | null;
  readonly usage: DelegationUsage | null;
  readonly stopReason: SubagentStopReason | null;
}

/** Never rejects: whatever goes wrong with the child is an outcome. */
export async function runBatchChild(child: BatchChild): Promise<BatchChildOutcome> {
  const { definition, signal } = child;
  const agent = toChildAgent(child);
  if (typeof agent === "string") return failedOutcome(agent);
  const execution = new DelegationExecution({
    agentName: definition.name,
    model: agent.model,
    maxTurns: definition.maxTurns,
    timeoutMs: child.timeoutMs,
    timers: child.timers ?? systemTimers,
  });
  const onAbort = (): void => void execution.cancel();
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) execution.cancel();
  else await execution.drive(() => startChild(child, agent, execution));
  signal.removeEventListener("abort", onAbort);
  if (!execution.isSettled) return failedOutcome(INTERRUPTED);
  const { status, result, error, usage, stopReason } = await execution.settled;
  const text = status === "completed" ? (result ?? null) : null;
  return { status, result: text, error: error ?? null, usage: usage ?? null, stopReason: stopReason ?? null };
}

/** Nobody can resume an item (contracts, "Delegation"). */
const INTERRUPTED = "The item asked for human input, which a batch item cannot get";

/** Or why there is none. */
function toChildAgent({ definition, models, hooks, tools }: BatchChild): ChildAgent | string {
  if (definition.acp !== undefined) return toRemoteChild(definition);
  const model = models.find(definition.model);
  if (model === undefined) return `there is no model '${definition.model}'`;
  const own = filterTools(tools, { deny: DELEGATION_TOOL_NAMES });
  return {
    name: definition.name,
    ...childPersona(definition, hooks),
    model,
    tools: selectChildTools(own, definition),
    maxTurns: definition.maxTurns,
  };
}

function toRemoteChild(definition: SubagentDefinition): ChildAgent | string {
  try {
    return remoteChild(definition);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function startChild(child: BatchChild, agent: ChildAgent, execution: DelegationExecution) {
  const { definition, taskId, services, prompt } = child;
  return child.service.start(definition.provider, {
    id: taskId,
    prompt,
    agent: { ...agent, model: execution.tokens.watch(agent.model) },
    parent: { name: "batch", depth: 0, config: child.config ?? {}, services, checkpointer: false },
    signal: execution.signal,
  });
}

function failedOutcome(error: string): BatchChildOutcome {
  return { status: "failed", result: null, error, usage: null, stopReason: null };
}
