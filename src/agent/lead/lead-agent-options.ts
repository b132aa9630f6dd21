/**
 * What the assembly of a lead agent is given, and what it gives. Shapes only.
 * Whatever is left out of the options comes from the local composition (`local-composition.ts`).
 */
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import type { DeputyConfig } from "../../config.ts";
import type { AgentSnapshot } from "../../domain/assistant/agent-snapshot.ts";
import type { ManagedSubagent } from "../../domain/delegation/managed-subagent.ts";
import type { AgentGraph } from "../graph/agent-graph.ts";
import type { AgentServices } from "../graph/agent-services.ts";
import type { AgentHook } from "../hooks/hook.ts";
import type { CircuitBreakers } from "../models/circuit-breakers.ts";
import type { ModelCatalog } from "../models/model.ts";
import type { AdmissionController } from "../subagents/admission-controller.ts";
import type { DelegationJournal } from "../subagents/delegation-journal.ts";
import type { SubagentService } from "../subagents/subagent-service.ts";
import type { Timers } from "../subagents/timers.ts";
import type { ToolAuthorization } from "../tools/authorization.ts";
import type { BatchService } from "../tools/batch-tools.ts";
import type { Tool } from "../tools/tool.ts";
import type { LeadRunOptions } from "./run-options.ts";

export interface LeadAgentOptions {
  readonly deputy: DeputyConfig;
  readonly models: ModelCatalog;
  /** Tools that work by themselves: the workspace's and the operator's. */
  readonly tools: readonly Tool[];
  readonly services: AgentServices;
  /** Where children are started; its providers are registered. */
  readonly subagents: SubagentService;
  readonly admission: AdmissionController;
  readonly journal: DelegationJournal;
  /** One for all agents that share a provider's fate: the thread object's. */
  readonly circuits: CircuitBreakers;
  /** Who the run belongs to and what that one may use; absent: what the operator's lists leave to the role `user`. */
  readonly authorization?: ToolAuthorization;
  readonly batches?: BatchService;
  readonly checkpointer?: BaseCheckpointSaver | false;
  readonly random: () => number;
  readonly timers?: Timers;
  /** The names a run's caller may delegate to; null means all. The agent and the run's config can only narrow it. */
  readonly allowedSubagents?: readonly string[] | null;
  /** The custom agent the run was accepted with. */
  readonly agent?: AgentSnapshot;
  /** The enabled managed subagents, as the run was accepted with them. */
  readonly managedSubagents?: readonly ManagedSubagent[];
}

/** The objects the graph was built from, not copies of them. Not for the wire. */
export interface LeadAgentParts {
  readonly systemPrompt: string;
  readonly tools: readonly Tool[];
  readonly hooks: readonly AgentHook[];
  readonly allowedSubagents: readonly string[] | null;
}

export interface LeadAgentDescriptor {
  /** The one that answers, whatever the run and the deployment said about it. */
  readonly model: string;
  /** Whether the lead thinks before it answers: asked for, and the model can. */
  readonly thinking: boolean;
  readonly promptSha256: string;
  readonly tools: readonly string[];
  /** In the order of the chain. */
  readonly hooks: readonly string[];
  readonly subagents: readonly string[];
  readonly limits: LeadRunOptions["limits"];
  readonly maxTurns: number;
  readonly parts: LeadAgentParts;
}

export interface LeadAgent {
  readonly graph: AgentGraph;
  readonly descriptor: LeadAgentDescriptor;
}
