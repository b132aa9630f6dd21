/**
 * A seam with the providers that need nothing but this process: `spawn` and `fork`.
 */
import { forkProvider } from "./providers/fork.ts";
import { spawnProvider } from "./providers/spawn.ts";
import { SubagentService, type SubagentServicePorts } from "./subagent-service.ts";

export function inProcessSubagents(ports: SubagentServicePorts): SubagentService {
  const service = new SubagentService(ports);
  service.register(spawnProvider());
  service.register(forkProvider());
  return service;
}
