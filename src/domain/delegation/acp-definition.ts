/** The definition of an agent of another process, from the few fields that it has. */
import type { AcpEndpoint } from "./acp-endpoint.ts";
import type { ManagedDefinition } from "./managed-subagent.ts";

/** Of `maxTurns`, which must be a number: no turn of such an agent is counted here. */
export const NO_TURNS = 1;

/** What the agent has of its own, its prompt, tools, model and bounds, stays at values that say nothing. */
export function acpDefinition({
  description,
  timeoutSeconds,
  acp,
}: {
  description: string;
  timeoutSeconds: number;
  acp: AcpEndpoint;
}): ManagedDefinition {
  return {
    description,
    systemPrompt: "",
    tools: null,
    disallowedTools: [],
    model: "inherit",
    maxTurns: NO_TURNS,
    timeoutSeconds,
    provider: "acp",
    maxDepth: 3,
    acp,
  };
}
