/** Managed definitions as tests write them. */
import type { ManagedDefinition, ManagedSubagent } from "../../src/domain/delegation/managed-subagent.ts";

export function managedDefinition(over: Partial<ManagedDefinition> = {}): ManagedDefinition {
  return {
    description: "Audits numbers.",
    systemPrompt: "Audit.",
    tools: null,
    disallowedTools: ["task", "ask_clarification", "present_files"],
    model: "inherit",
    maxTurns: 50,
    timeoutSeconds: 900,
    provider: "spawn",
    maxDepth: 3,
    ...over,
  };
}

export function managedSubagent(name: string, over: Partial<ManagedDefinition> = {}): ManagedSubagent {
  return { name, version: 1, definition: managedDefinition(over) };
}
