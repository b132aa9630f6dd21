/**
 * Keeps the operator's secrets out of stored batches: a snapshot of a configured agent has no headers, and the attempt
 * takes those of the configuration of its own time. They go to the address they were configured for and to no other.
 * A managed definition keeps its headers: the store of definitions holds them anyway.
 */
import type { DeputyConfig } from "../../config.ts";
import type { SubagentDefinition } from "./subagent-definition.ts";

export function withoutOperatorSecrets(definition: SubagentDefinition): SubagentDefinition {
  const { acp, source } = definition;
  return acp === undefined || source !== "config" ? definition : { ...definition, acp: { ...acp, headers: {} } };
}

export function withOperatorSecrets(
  definition: SubagentDefinition,
  { custom_agents }: DeputyConfig["subagents"],
): SubagentDefinition {
  const { acp, source, name } = definition;
  const configured = custom_agents[name];
  if (acp === undefined || source !== "config" || configured?.provider !== "acp") return definition;
  const { url, headers } = configured.acp;
  return url === acp.url ? { ...definition, acp: { ...acp, headers } } : definition;
}
