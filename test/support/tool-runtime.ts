/** Runs a tool as the tools node does: arguments through its schema, a session of its own. */
import type { Tool, ToolOutcome, ToolRuntime } from "../../src/agent/tools/tool.ts";
import type { WorkspaceSession } from "../../src/agent/tools/workspace.ts";

export function toolRuntime(workspace: WorkspaceSession, signal = new AbortController().signal): ToolRuntime {
  return {
    toolCallId: "call_000000000000000000000000",
    runId: "run",
    attempt: 1,
    signal,
    workspace,
    state: () => {
      throw new Error("workspace tools read no state");
    },
    emit: () => {
      throw new Error("workspace tools emit nothing");
    },
    config: {},
  };
}

export async function runTool(
  tool: Tool,
  args: Record<string, unknown>,
  workspace: WorkspaceSession,
): Promise<ToolOutcome> {
  return tool.execute(tool.parameters.parse(args), toolRuntime(workspace));
}
