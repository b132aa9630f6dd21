/**
 * The `task` tool: one delegation to one subagent (delegation-behaviour 2).
 * Owns its arguments, the refusals before a run and the result message. Invariants: exactly one result whatever happens;
 * a child that did not complete is an error result (R145); status travels in metadata, text is for reading only.
 */
import { z } from "zod";
import { boundText } from "../../domain/delegation/bounded-text.ts";
import { isBlank, type DelegationOutcome } from "../../domain/delegation/delegation-outcome.ts";
import { toDelegationKwargs } from "../../domain/delegation/delegation-result.ts";
import { isResultCut, toDelegationText } from "../../domain/delegation/delegation-text.ts";
import type { DelegationLimits } from "../../domain/delegation/delegation-limit.ts";
import { renderManagedSubagents } from "../../domain/delegation/managed-rendering.ts";
import { STEP_CHARS_MAX } from "../../domain/delegation/subagent-steps.ts";
import type { TaskEvent } from "../../domain/delegation/task-events.ts";
import type { AgentServices } from "../graph/agent-services.ts";
import { findThreadState } from "../graph/read-thread-state.ts";
import { subagentCatalogue } from "../hooks/durable-context.ts";
import type { AgentHook } from "../hooks/hook.ts";
import { mustEscape } from "../hooks/tool-errors.ts";
import type { ChatModel, ModelCatalog } from "../models/model.ts";
import { childPersona } from "../subagents/child-persona.ts";
import { selectChildTools } from "../subagents/child-tools.ts";
import { describeFor, policyFor, policyMode } from "../subagents/delegation-policy.ts";
import type { SubagentExecutor } from "../subagents/executor.ts";
import { FORK_PROVIDER_NAME } from "../subagents/providers/fork.ts";
import { CHILD_DEPTH_KEY, CHILD_TASK_KEY } from "../subagents/providers/in-process-run.ts";
import type { ChildAgent } from "../subagents/provider.ts";
import type { SubagentRegistry } from "../subagents/registry.ts";
import { remoteChild } from "../subagents/remote-child.ts";
import { RunDelegations } from "../subagents/run-delegations.ts";
import { sha256 } from "../sha256.ts";
import type { SubagentDefinition } from "../subagents/subagent-definition.ts";
import type { Tool, ToolOutcome, ToolRuntime } from "./tool.ts";

/** How deep children may delegate when their definition lets them: a lead's child is at 1. */
export const DELEGATION_DEPTH_MAX = 3;

export interface TaskToolBinding {
  readonly executor: SubagentExecutor;
  /** The run's snapshot. */
  readonly registry: SubagentRegistry;
  readonly models: ModelCatalog;
  readonly services: AgentServices;
  /** Hooks of every child. */
  readonly childHooks: readonly AgentHook[];
  /** The agent that gets this tool. */
  readonly agentName: string;
  readonly model: ChatModel;
  /** Its tools, this one excepted. */
  readonly tools: readonly Tool[];
  /** What the limit hook holds the run to: the same object. */
  readonly limits: DelegationLimits;
  /** The deepest level below the lead that its delegations may reach; absent for the lead. */
  readonly depthMax?: number;
  /** One for the lead and everything below it; absent for the lead, whose tool makes it. */
  readonly made?: RunDelegations;
}

const parameters = z.object({
  description: z.string().describe("Three to five words for display and logs; the subagent does not see it"),
  prompt: z
    .string()
    .describe(
      "The whole job, self-contained: the subagent sees nothing of this conversation, unless its type says that it does",
    ),
  subagent_type: z.string().describe("Which subagent does it"),
});

/** With the limits of the run that it is bound to. */
export interface TaskTool extends Tool {
  readonly limits: DelegationLimits;
}

export function createTaskTool(parts: TaskToolBinding): TaskTool {
  const binding = { made: new RunDelegations(), ...parts };
  return {
    name: "task",
    limits: binding.limits,
    description: describeTask(binding),
    parameters,
    recovery: "safe",
    execute: async (args, runtime) => {
      try {
        return await delegate(binding, parameters.parse(args), runtime);
      } catch (error) {
        if (mustEscape(error, runtime.config)) throw error;
        return toToolOutcome({ status: "failed", error: faultText(error) }, runtime);
      }
    },
  };
}

function describeTask({ registry, limits }: TaskToolBinding): string {
  const mode = policyMode(limits);
  return [
    "Delegates one self-contained job to a subagent and returns its final message.",
    ...policyFor("task", mode),
    "Subagent types:",
    ...registry.operatorList().map((each) => `- ${each.name}: ${describeFor(each, mode)}${contextNote(each)}`),
    ...(registry.managedList().length === 0 ? [] : [FURTHER_TYPES_NOTE]),
  ].join("\n");
}

/** What the lead must not tell again, because the child has it. */
function contextNote({ provider }: SubagentDefinition): string {
  return provider === FORK_PROVIDER_NAME ? " (sees this conversation's completed turns)" : "";
}

/** Their names and descriptions came through the API: a tool's description is no place for them (R173). */
const FURTHER_TYPES_NOTE = "Further types may be listed, as data, in the message wrapped in <durable_context_data>.";

type TaskArgs = z.output<typeof parameters>;

type SharedBinding = TaskToolBinding & { readonly made: RunDelegations };

async function delegate(binding: SharedBinding, args: TaskArgs, runtime: ToolRuntime): Promise<ToolOutcome> {
  const definition = binding.registry.find(args.subagent_type);
  if (definition === undefined) return toToolOutcome(unknownType(binding.registry, args.subagent_type), runtime);
  const depth = depthOf(runtime);
  const depthMax = depthMaxOf(binding, definition);
  if (depth >= depthMax) {
    const error = `Delegation depth ${depth + 1} exceeds the limit of ${depthMax}`;
    return toToolOutcome({ status: "failed", error }, runtime);
  }
  if (!isWithinCap(binding, depth, runtime)) {
    const error = `This run has used its subagent delegation limit of ${binding.limits.maxTotal}; do the rest yourself`;
    return toToolOutcome({ status: "failed", error }, runtime);
  }
  const agent = toChildAgent(binding, definition);
  if (agent === undefined) {
    const error = `Subagent type '${definition.name}' names an unknown model '${definition.model}'`;
    return toToolOutcome({ status: "failed", error }, runtime);
  }
  const outcome = await binding.executor.run({
    taskId: runtime.toolCallId,
    description: args.description,
    prompt: args.prompt,
    provider: definition.provider,
    timeoutSeconds: definition.timeoutSeconds,
    agent,
    parent: { name: binding.agentName, depth, config: runtime.config, services: binding.services },
    ...parentTask(runtime),
    signal: runtime.signal,
    emit: (event: TaskEvent) => runtime.emit({ ...event }),
  });
  return toToolOutcome(outcome, runtime);
}

/** The lead's calls were cut at the cap; they count for its children, those of the same answer included. */
function isWithinCap(
  { made, limits }: SharedBinding,
  depth: number,
  { runId, toolCallId, config }: ToolRuntime,
): boolean {
  if (depth > 0) return made.admit(runId, toolCallId, limits.maxTotal);
  const ledger = findThreadState(config)?.delegations ?? [];
  const own = ledger.filter((entry) => runId === undefined || entry.run_id === runId);
  made.add(runId, [toolCallId, ...own.map(({ id }) => id)]);
  return true;
}

/** `undefined` when its model is unknown. */
function toChildAgent(binding: TaskToolBinding, definition: SubagentDefinition): ChildAgent | undefined {
  if (definition.acp !== undefined) return remoteChild(definition);
  const model = definition.model === "inherit" ? binding.model : binding.models.find(definition.model);
  return model === undefined ? undefined : childAgent(binding, definition, model);
}

/** A child that may delegate gets a `task` tool of its own, bound to its own tools. */
function childAgent(binding: TaskToolBinding, definition: SubagentDefinition, model: ChatModel) {
  const own = createTaskTool(binding);
  const selected = selectChildTools([...binding.tools, own], definition);
  const tools = selected.filter((tool) => tool !== own);
  const depthMax = depthMaxOf(binding, definition);
  const nested = createTaskTool({ ...binding, agentName: definition.name, model, tools, depthMax });
  const delegates = tools.length < selected.length;
  return {
    name: definition.name,
    ...childPersona(definition, delegates ? delegatingHooks(binding) : binding.childHooks),
    model,
    tools: delegates ? [...tools, nested] : tools,
    maxTurns: definition.maxTurns,
  };
}

/** What the tool's description may not say, the request does, for a child as for the lead. */
function delegatingHooks({ registry, childHooks }: TaskToolBinding): readonly AgentHook[] {
  const catalogue = renderManagedSubagents(registry.managedList());
  return catalogue === "" ? childHooks : [subagentCatalogue(catalogue), ...childHooks];
}

/** Absolute: a definition can only narrow what its parents left. */
function depthMaxOf({ depthMax = DELEGATION_DEPTH_MAX }: TaskToolBinding, { maxDepth }: SubagentDefinition): number {
  return Math.min(depthMax, maxDepth ?? DELEGATION_DEPTH_MAX);
}

/** Where no thread object stands in front, a client's `configurable` reaches this: nothing is less deep than a lead. */
function depthOf({ config }: ToolRuntime): number {
  const depth: unknown = config.configurable?.[CHILD_DEPTH_KEY];
  return Number.isSafeInteger(depth) ? Math.max(depth as number, 0) : 0;
}

function parentTask({ config }: ToolRuntime): { parentTaskId?: string } {
  const taskId: unknown = config.configurable?.[CHILD_TASK_KEY];
  return typeof taskId === "string" ? { parentTaskId: taskId } : {};
}

function unknownType(registry: SubagentRegistry, name: string): DelegationOutcome {
  return { status: "failed", error: `Unknown subagent type '${name}'. Available: ${registry.available()}` };
}

function toToolOutcome(outcome: DelegationOutcome, runtime: ToolRuntime): ToolOutcome {
  const result = outcome.status === "completed" ? (outcome.result ?? "") : "";
  const elsewhere = isResultCut(result) ? keepWhole(result, runtime) : undefined;
  return {
    status: outcome.status === "completed" ? "success" : "error",
    content: withPartialText(toDelegationText(outcome, elsewhere), outcome),
    additionalKwargs: toDelegationKwargs(outcome, isBlank(result) ? undefined : sha256(result)),
  };
}

/** Partial text of a child that did not complete is shown below the headline, named as such. */
function withPartialText(headline: string, outcome: DelegationOutcome): string {
  if (outcome.status === "completed" || isBlank(outcome.result)) return headline;
  return `${headline}\nPartial output, not a result: ${boundText(outcome.result ?? "", STEP_CHARS_MAX)}`;
}

/** The whole of a result that is too long for a message, as a workspace file that commits with this call. */
function keepWhole(result: string, { workspace, toolCallId }: ToolRuntime): string | undefined {
  const path = `/workspace/outputs/${toolCallId}.txt`;
  return workspace.write(path, new TextEncoder().encode(result)).ok ? path : undefined;
}

/** Enough of a fault to tell which it was. */
const FAULT_DETAIL_CHARS_MAX = 500;

function faultText(error: unknown): string {
  if (!(error instanceof Error)) return boundText(String(error), FAULT_DETAIL_CHARS_MAX);
  return `${error.name}: ${boundText(error.message, FAULT_DETAIL_CHARS_MAX)}`;
}
