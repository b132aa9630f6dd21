/**
 * What a program of the caller's imports (docs/embedding.md): agents and their runtime without gateway and thread objects.
 * Names only; nothing here needs Cloudflare.
 */
export { createDeputyAgent, type DeputyAgentOptions } from "./runtime/create-deputy-agent.ts";
export type { AgentRun, DeputyAgent } from "./runtime/deputy-agent.ts";
export { SubagentRuntimeError, type SubagentRuntimeOptions } from "./runtime/runtime-options.ts";
export { SubagentRuntime } from "./runtime/subagent-runtime.ts";
export { assembleLeadAgent } from "./lead/assemble-lead-agent.ts";
export { makeLeadAgent } from "./lead/make-lead-agent.ts";
export { toGraph } from "./to-graph.ts";
export { createModelCatalog } from "./models/catalog.ts";
export { openNodeWebSocket } from "./subagents/node-web-socket.ts";
export type { SubagentProvider } from "./subagents/provider.ts";
export { acpProvider } from "./subagents/providers/acp.ts";
export { systemTimers } from "./subagents/timers.ts";
export { ScratchWorkspace } from "./tools/scratch-workspace.ts";
export { workspaceTools } from "./tools/workspace-tools.ts";
export type { Tool } from "./tools/tool.ts";
export type { BatchRepository } from "../domain/batch/batch-repository.ts";
