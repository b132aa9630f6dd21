/**
 * Which tools a child gets: its parent's, minus those that delegate, then the definition's allow and deny lists (R1).
 * Composition, not a security boundary: whoever may not use a tool must not have it in the parent's list either.
 */
import type { Tool } from "../tools/tool.ts";
import type { SubagentDefinition } from "./subagent-definition.ts";

/** Tools that start or steer other agents' work. */
export const DELEGATION_TOOL_NAMES = ["task", "batch_task", "batch_status", "cancel_batch"] as const;

export interface ToolFilter {
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
}

export function filterTools(tools: readonly Tool[], filter: ToolFilter): readonly Tool[] {
  const { allow, deny = [] } = filter;
  return tools.filter((tool) => (allow === undefined || allow.includes(tool.name)) && !deny.includes(tool.name));
}

/** A definition that names a delegation tool in its allow list, and does not deny it, keeps that tool. */
export function selectChildTools(
  parentTools: readonly Tool[],
  definition: Pick<SubagentDefinition, "tools" | "disallowedTools">,
): readonly Tool[] {
  const { tools, disallowedTools } = definition;
  const unasked = DELEGATION_TOOL_NAMES.filter((name) => tools?.includes(name) !== true);
  const inherited = filterTools(parentTools, { deny: unasked });
  return filterTools(inherited, { ...(tools === null ? {} : { allow: tools }), deny: disallowedTools });
}
