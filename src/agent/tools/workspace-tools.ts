/**
 * The tools over a workspace session, in the order a model sees them. All are `safe` to run again: their writes commit
 * with their result, so a call that runs again has left nothing behind.
 */
import { bashTool } from "./bash.ts";
import { lsTool, readFileTool } from "./read-files.ts";
import type { Tool } from "./tool.ts";
import { strReplaceTool, writeFileTool } from "./write-files.ts";

export function workspaceTools(): Tool[] {
  return [bashTool, lsTool, readFileTool, writeFileTool, strReplaceTool];
}
