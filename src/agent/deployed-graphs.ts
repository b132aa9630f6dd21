/**
 * The graph catalogue of a deployment: `lead_agent`, and the graphs `deputy.config.ts` names.
 * Owns how a graph is bound to a thread: the lead agent is assembled for its run; a compiled graph of the operator's is
 * shared by every thread and finds this thread's saver in its config; a factory is called with the run's config.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { DeputyConfig } from "../config.ts";
import { invariant } from "../domain/shared/assert.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import {
  type BuiltGraph,
  type GraphBinding,
  type GraphCatalog,
  type RunnableGraph,
  SAVER_KEY,
} from "./graph-catalog.ts";
import { recursionLimitFor } from "./graph/turn-budget.ts";
import { assembleLeadAgent } from "./lead/assemble-lead-agent.ts";
import { resolveRunOptions } from "./lead/run-options.ts";
import type { ModelCatalog } from "./models/model.ts";
import { DELEGATION_TOOL_NAMES } from "./subagents/child-tools.ts";
import type { SubagentService } from "./subagents/subagent-service.ts";
import { toGraph } from "./to-graph.ts";
import { ToolAuthorization, type ToolPolicy } from "./tools/authorization.ts";
import { configuredPolicy, UNNAMED_PRINCIPAL } from "./tools/configured-policy.ts";
import type { Tool } from "./tools/tool.ts";

/** LangGraph's own default for graphs that are not ours. */
const DEFAULT_RECURSION_LIMIT = 25;

export interface DeployedGraphsOptions {
  readonly config: DeputyConfig;
  readonly models: ModelCatalog;
  readonly tools: readonly Tool[];
  readonly subagents: SubagentService;
  readonly random: () => number;
  /** Absent: the lists of the configuration. */
  readonly policy?: ToolPolicy;
}

type AgentOrGraph = RunnableGraph | { readonly graph: RunnableGraph };
type GraphFactory = (config: RunnableConfig) => AgentOrGraph | Promise<AgentOrGraph>;

export function deployedGraphs(options: DeployedGraphsOptions): GraphCatalog {
  const graphs = new Map(Object.entries(options.config.graphs));
  return {
    has: (graphId) => graphId === LEAD_GRAPH_ID || graphs.has(graphId),
    adjusted(graphId, config, maxRunning) {
      if (graphId !== LEAD_GRAPH_ID) return {};
      return resolveRunOptions(config, { deputy: options.config, models: options.models, maxRunning }).adjusted;
    },
    async build(graphId, config, binding) {
      if (graphId === LEAD_GRAPH_ID) return buildLead(options, config, binding);
      const graph = graphs.get(graphId);
      invariant(graph !== undefined, `no graph '${graphId}'`);
      const built = typeof graph === "function" ? await (graph as GraphFactory)(config) : (graph as AgentOrGraph);
      return {
        graph: toGraph(built),
        configurable: { [SAVER_KEY]: binding.saver },
        recursionLimit: config.recursionLimit ?? DEFAULT_RECURSION_LIMIT,
      };
    },
  };
}

async function buildLead(
  options: DeployedGraphsOptions,
  config: RunnableConfig,
  binding: GraphBinding,
): Promise<BuiltGraph> {
  const { graph, descriptor } = assembleLeadAgent(config, {
    deputy: options.config,
    models: options.models,
    tools: options.tools,
    services: binding.services,
    authorization: await authorizationOf(options, binding),
    subagents: options.subagents,
    admission: binding.admission,
    journal: binding.journal,
    circuits: binding.circuits,
    ...(binding.batches === undefined ? {} : { batches: binding.batches }),
    ...(binding.managedSubagents === undefined ? {} : { managedSubagents: binding.managedSubagents }),
    ...(binding.agent === undefined ? {} : { agent: binding.agent }),
    checkpointer: binding.saver,
    random: options.random,
  });
  return {
    graph,
    configurable: {},
    recursionLimit: recursionLimitFor(descriptor.maxTurns),
  };
}

function reportingTo({ report }: GraphBinding["services"]) {
  return report === undefined ? {} : { reportFault: report };
}

/** Whoever reads state runs nothing: nobody, and no tools. */
const NOBODY_READS: ToolPolicy = () => ({ kind: "deny", reason: "a graph for reading state runs no tools" });

async function authorizationOf(
  { config, tools, policy = configuredPolicy(config.tools) }: DeployedGraphsOptions,
  { principal, services }: GraphBinding,
): Promise<ToolAuthorization> {
  const authorization =
    principal === undefined
      ? new ToolAuthorization({ policy: NOBODY_READS, principal: UNNAMED_PRINCIPAL })
      : new ToolAuthorization({ policy, principal, ...reportingTo(services) });
  await authorization.prepare([...tools.map(({ name }) => name), ...DELEGATION_TOOL_NAMES]);
  return authorization;
}
