/** Starts the test agent for a project whose tests run in workerd, where no process can be started. */
import type { TestProject } from "vitest/node";
import { AcpAgentProcess } from "./acp-agent-process.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** `http://host:port` of the agent. */
    readonly acpAgent: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const agent = await AcpAgentProcess.start();
  project.provide("acpAgent", agent.origin);
  return () => agent.stop();
}
