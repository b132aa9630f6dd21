/**
 * The graph catalogue of a deployment: `lead_agent`, and the graphs `deputy.config.ts` names.
 * Owns how a graph is bound to a thread: the lead agent is assembled for its run; a compiled graph of the operator's is
 * shared by every thread and finds this thread's saver in its config; a factory is called with the run's config.
 * A graph that cannot be had, because it is gone or its factory fails, is one that fails its run with that reason and
 * leaves the thread's state readable: a throw here would leave the run to recovery, which would meet it again.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { DeputyConfig } from "../config.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import { type BuiltGraph, type GraphBinding, type GraphCatalog, nodeNames, SAVER_KEY } from "./graph-catalog.ts";
import { checkContext } from "./graphs/check-context.ts";
import { GraphNotServedError } from "./graphs/graph-not-served-error.ts";
import { identifyingSaver, messageChannelsOf } from "./graphs/message-ids.ts";
import { recursionLimitOf, serveGraph } from "./graphs/serve-graph.ts";
import { ServedGraphs } from "./graphs/served-graphs.ts";
import { storedStateGraph } from "./graphs/stored-state-graph.ts";
import { recursionLimitFor } from "./graph/turn-budget.ts";
import { assembleLeadAgent } from "./lead/assemble-lead-agent.ts";
import { resolveRunOptions } from "./lead/run-options.ts";
import type { ModelCatalog } from "./models/model.ts";
import { DELEGATION_TOOL_NAMES } from "./subagents/child-tools.ts";
import type { SubagentService } from "./subagents/subagent-service.ts";
import { ToolAuthorization, type ToolPolicy } from "./tools/authorization.ts";
import { configuredPolicy, UNNAMED_PRINCIPAL } from "./tools/configured-policy.ts";
import type { Tool } from "./tools/tool.ts";

export interface DeployedGraphsOptions {
  readonly config: DeputyConfig;
  readonly models: ModelCatalog;
  readonly tools: readonly Tool[];
  readonly subagents: SubagentService;
  readonly random: () => number;
  /** Absent: the lists of the configuration. */
  readonly policy?: ToolPolicy;
}

export function deployedGraphs(options: DeployedGraphsOptions): GraphCatalog {
  const graphs = new ServedGraphs(options.config.graphs);
  let leadNodes: readonly string[] | undefined;
  return {
    has: (graphId) => graphId === LEAD_GRAPH_ID || graphs.has(graphId),
    versionOf: (graphId) => graphs.versionOf(graphId),
    serves: (graphId, version) => graphId === LEAD_GRAPH_ID || graphs.serves(graphId, version),
    adjusted(graphId, config, maxRunning) {
      if (graphId !== LEAD_GRAPH_ID) return {};
      return resolveRunOptions(config, { deputy: options.config, models: options.models, maxRunning }).adjusted;
    },
    nodesOf: async (graphId, config) =>
      graphId === LEAD_GRAPH_ID
        ? (leadNodes ??= nodeNames(assembleLeadAgent({}).graph))
        : nodesOfServed(graphs, graphId, config),
    build(graphId, config, binding) {
      if (graphId === LEAD_GRAPH_ID) return buildLead(options, config, binding);
      return buildServed(graphs, graphId, { config, binding });
    },
  };
}

/** A factory that fails is the run's to fail over, with the reason. */
async function nodesOfServed(
  graphs: ServedGraphs,
  graphId: string,
  config: RunnableConfig,
): Promise<readonly string[] | undefined> {
  const runtime = { accessContext: "threads.read", executionRuntime: null } as const;
  const built = await graphs.build({ graphId, version: undefined }, config, runtime).catch(() => undefined);
  return built && nodeNames(built);
}

async function buildServed(
  graphs: ServedGraphs,
  graphId: string,
  { config, binding }: { readonly config: RunnableConfig; readonly binding: GraphBinding },
): Promise<BuiltGraph> {
  const { saver, principal, context, version } = binding;
  const isRun = principal !== undefined;
  const accessContext = isRun ? "threads.create_run" : "threads.read";
  const recursionLimit = (graph: object) => recursionLimitOf(graph, config.recursionLimit);
  try {
    const runtime = { accessContext, executionRuntime: isRun ? { context } : null } as const;
    const graph = await graphs.build({ graphId, version }, config, runtime);
    if (graph === undefined) throw new GraphNotServedError(graphId, version);
    if (isRun) checkContext(graph, { context, configurable: config.configurable });
    const channels = await messageChannelsOf(graph);
    const configurable = { [SAVER_KEY]: identifyingSaver(saver, channels, () => binding.services.newId()) };
    return { graph: serveGraph(graph, channels), configurable, recursionLimit: recursionLimit(graph) };
  } catch (error) {
    const graph = storedStateGraph(saver, error instanceof Error ? error : new Error(String(error)));
    return { graph, configurable: {}, recursionLimit: recursionLimit(graph) };
  }
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
