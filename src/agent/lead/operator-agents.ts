/** The custom agents of `deputy.config.ts`, as assistants are made of them. */
import type { DeputyConfig } from "../../config.ts";
import type { OperatorAgent } from "../../domain/assistant/agent-snapshot.ts";

export function operatorAgents({ custom }: DeputyConfig["agents"]): readonly OperatorAgent[] {
  return Object.entries(custom).map(([name, agent]) => ({
    name,
    description: agent.description,
    instructions: agent.instructions,
    ...(agent.model === undefined ? {} : { model: agent.model }),
    allowedSubagents: agent.allowed_subagents,
    tools: agent.tools,
  }));
}
