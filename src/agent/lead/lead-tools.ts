/**
 * The tools of one lead: what it was given, batches, and `task`. Owns which of them authorization leaves.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { DelegationLimits } from "../../domain/delegation/delegation-limit.ts";
import { threadIdOf } from "../graph/thread-id.ts";
import type { AgentHook } from "../hooks/hook.ts";
import type { ChatModel } from "../models/model.ts";
import { SubagentExecutor } from "../subagents/executor.ts";
import type { SubagentRegistry } from "../subagents/registry.ts";
import { runSlots } from "../subagents/run-slots.ts";
import { systemTimers } from "../subagents/timers.ts";
import { ASK_CLARIFICATION, askClarificationTool, askNobodyTool } from "../tools/ask-clarification.ts";
import { batchTools } from "../tools/batch-tools.ts";
import { createTaskTool } from "../tools/task.ts";
import type { Tool } from "../tools/tool.ts";
import type { LeadAgentOptions } from "./lead-agent-options.ts";

export const LEAD_AGENT_NAME = "lead";

export interface LeadToolParts {
  readonly config: RunnableConfig;
  readonly model: ChatModel;
  readonly registry: SubagentRegistry;
  /** What authorization and the agent's own list leave. */
  readonly mayUse: (tool: string) => boolean;
  /** Then `task` is permitted too. */
  readonly delegates: boolean;
  /** Resolved once for the run: prompt, limit hook and `task` share the object. */
  readonly limits: DelegationLimits;
  readonly childHooks: readonly AgentHook[];
}

/** What the policy permits binds the lead, and its children through it. */
export function leadTools(options: LeadAgentOptions, parts: LeadToolParts): readonly Tool[] {
  const given = options.tools.filter(({ name }) => name !== ASK_CLARIFICATION);
  const tools = [...given, askClarificationTool, ...leadBatchTools(options, parts)];
  const own = tools.filter(({ name }) => parts.mayUse(name));
  // A child has nobody to ask.
  const inherited = own.map((tool) => (tool === askClarificationTool ? askNobodyTool : tool));
  return parts.delegates ? [...own, leadTaskTool(options, parts, inherited)] : own;
}

function leadTaskTool(options: LeadAgentOptions, parts: LeadToolParts, tools: readonly Tool[]): Tool {
  const { models, services, subagents, journal, timers = systemTimers } = options;
  const admission = runSlots({
    admission: options.admission,
    maxConcurrent: parts.limits.maxConcurrent,
    deputy: options.deputy,
    newId: () => services.newId(),
    now: () => services.now(),
    timers,
  });
  return createTaskTool({
    executor: new SubagentExecutor({ service: subagents, admission, journal, timers }),
    registry: parts.registry,
    models,
    services,
    childHooks: parts.childHooks,
    agentName: LEAD_AGENT_NAME,
    model: parts.model,
    tools,
    limits: parts.limits,
  });
}

function leadBatchTools(options: LeadAgentOptions, { config, registry }: LeadToolParts): readonly Tool[] {
  const { batches, deputy, agent } = options;
  if (batches === undefined || !deputy.subagent_batches.enabled) return [];
  return batchTools({ batches, threadId: threadIdOf(config) ?? "", subagents: registry, tools: agent?.tools ?? null });
}
