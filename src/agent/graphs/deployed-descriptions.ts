/**
 * Descriptions of a deployment's graphs by id. Owns how one is had without a thread: the lead agent is assembled with its
 * defaults, a factory is called with the config of the assistant that is looked at.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { z } from "zod";
import type { DeputyConfig } from "../../config.ts";
import { AGENT_INSTRUCTIONS_CHARS_MAX, ALLOWED_SUBAGENTS_MAX } from "../../domain/assistant/agent-snapshot.ts";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import { LEAD_GRAPH_ID } from "../../protocol/identifiers.ts";
import { leadOptionsSchema } from "../../protocol/lead-options.ts";
import { assembleLeadAgent } from "../lead/assemble-lead-agent.ts";
import { CLIENT_CHANNELS } from "../thread-state/client-channels.ts";
import { type DescribedGraph, describeGraph } from "./describe-graph.ts";
import { type GraphSchemasOf, graphSchemas, type JsonSchema, MESSAGES_SCHEMA } from "./graph-schemas.ts";
import { ServedGraphs } from "./served-graphs.ts";

/** Why there is nothing to describe: a factory's own words. */
export interface NoDescription {
  readonly message: string;
}

export type DescribeGraph = (graphId: string, config: RunnableConfig) => Promise<Result<DescribedGraph, NoDescription>>;

export function deployedDescriptions(graphs: DeputyConfig["graphs"]): DescribeGraph {
  const served = new ServedGraphs(graphs);
  let lead: DescribedGraph | undefined;
  return async (graphId, config) => {
    if (graphId === LEAD_GRAPH_ID) return ok((lead ??= describeLead()));
    try {
      const runtime = { accessContext: "assistants.read", executionRuntime: null } as const;
      const graph = await served.build({ graphId, version: undefined }, config, runtime);
      return graph === undefined ? err({ message: "it is served no more" }) : ok(describeGraph(graph, graphId));
    } catch (error) {
      return err({ message: error instanceof Error ? `${error.name}: ${error.message}` : String(error) });
    }
  };
}

function describeLead(): DescribedGraph {
  return describeGraph(assembleLeadAgent({}).graph, LEAD_GRAPH_ID, leadSchemas);
}

/** Its channels are annotations; what a client may write of them, and its options, are known better. */
function leadSchemas(graph: object, graphId: string): GraphSchemasOf {
  const { state_schema } = graphSchemas(graph, graphId);
  const { run_progress: _own, ...properties } = (state_schema?.["properties"] ?? {}) as Record<string, JsonSchema>;
  const channels = { ...properties, messages: MESSAGES_SCHEMA };
  const input = Object.entries(channels).filter(([name]) => CLIENT_CHANNELS.includes(name));
  const options = leadOptions();
  return {
    graph_id: graphId,
    input_schema: { type: "object", properties: Object.fromEntries(input) },
    output_schema: { type: "object", properties: channels },
    state_schema: { type: "object", properties: channels },
    config_schema: options,
    context_schema: options,
  };
}

const agentOptionsSchema = leadOptionsSchema.extend({
  instructions: z.string().max(AGENT_INSTRUCTIONS_CHARS_MAX).nullish(),
  allowed_subagents: z.array(z.string()).max(ALLOWED_SUBAGENTS_MAX).nullish(),
});

function leadOptions(): JsonSchema {
  const { $schema: _dialect, ...options } = z.toJSONSchema(agentOptionsSchema, { io: "input", unrepresentable: "any" });
  return options;
}
