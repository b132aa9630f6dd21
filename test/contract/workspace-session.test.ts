import { describe } from "vitest";
import { ScratchWorkspace } from "../../src/agent/tools/scratch-workspace.ts";
import { workspaceSessionSuite } from "../support/workspace-session-suite.ts";

describe("WorkspaceSession over a scratch workspace", () => {
  workspaceSessionSuite(async (work) => {
    const workspace = new ScratchWorkspace({ files: [], now: () => 0 });
    work({ session: workspace.open("call_1"), settled: () => workspace.open("call_2") });
  });
});
