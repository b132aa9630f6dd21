/**
 * The `spawn` provider: a child in this process that starts from its prompt alone. It can be neither steered nor resumed.
 */
import type { SubagentProvider } from "../provider.ts";
import { InProcessRun } from "./in-process-run.ts";

export function spawnProvider(): SubagentProvider {
  return {
    name: "spawn",
    capabilities: { outputSchema: true, depthLimit: true, toolFilter: true, persona: true },
    inheritsParentContext: false,
    start: async (request) => new InProcessRun({ request }),
  };
}
