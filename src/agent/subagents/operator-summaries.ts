/** The built-in and configured subagents as everyone may see them: whose names managed definitions cannot take. */
import type { DeputyConfig } from "../../config.ts";
import type { SubagentSummary } from "../../protocol/subagents.ts";
import { SubagentRegistry } from "./registry.ts";

export function operatorSummaries(config: DeputyConfig["subagents"]): readonly SubagentSummary[] {
  return new SubagentRegistry(config).operatorList().map(({ name, description, source }) => ({
    name,
    source: source === "built-in" ? "built_in" : "config",
    description,
  }));
}
