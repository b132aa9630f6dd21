/**
 * The operator's tool policy, from `deputy.config.ts`: lists for everybody, and lists for a role. Both must permit.
 * Also finds names in those lists that no tool has: a typing error in a deny list would permit in silence.
 */
import { ConfigError, type DeputyConfig } from "../../config.ts";
import type { Principal, Role } from "../../domain/trust/principal.ts";
import { DELEGATION_TOOL_NAMES } from "../subagents/child-tools.ts";
import type { ToolDecision, ToolPolicy } from "./authorization.ts";
import { ASK_CLARIFICATION } from "./ask-clarification.ts";
import type { Tool } from "./tool.ts";

type ToolsConfig = DeputyConfig["tools"];
type ToolLists = ToolsConfig["roles"][Role];

const ALLOWED: ToolDecision = { kind: "allow" };

/** Who a run belongs to whose caller named nobody: the least that there is. */
export const UNNAMED_PRINCIPAL: Principal = { owner: "unnamed", role: "user" };

export function configuredPolicy(tools: ToolsConfig): ToolPolicy {
  return ({ role }, tool) => {
    if (!permits(tools, tool)) return { kind: "deny", reason: "this deployment does not offer it" };
    // A role that the configuration does not know has no lists, and so no tools.
    const lists: ToolLists | undefined = tools.roles[role];
    if (lists !== undefined && permits(lists, tool)) return ALLOWED;
    return { kind: "deny", reason: `the role '${role}' may not use it` };
  };
}

function permits({ allow, deny }: ToolLists, tool: string): boolean {
  return (allow === null || allow.includes(tool)) && !deny.includes(tool);
}

/** `tools`: those of the deployment; the ones that delegate are always there. Throws `ConfigError`. */
export function assertToolNames(config: ToolsConfig, tools: readonly Tool[]): void {
  const known: readonly string[] = [...tools.map(({ name }) => name), ASK_CLARIFICATION, ...DELEGATION_TOOL_NAMES];
  const { user, admin } = config.roles;
  const lists = { tools: config, "tools.roles.user": user, "tools.roles.admin": admin };
  // Without this a typing error would let a tool run unasked.
  const unasked = Object.keys(config.approval)
    .filter((name) => !known.includes(name))
    .map((name) => `tools.approval: there is no tool '${name}'`);
  const unlisted = Object.entries(lists).flatMap(([path, { allow, deny }]) =>
    Object.entries({ allow: allow ?? [], deny }).flatMap(([list, names]) =>
      names.filter((name) => !known.includes(name)).map((name) => `${path}.${list}: there is no tool '${name}'`),
    ),
  );
  const unknown = [...unlisted, ...unasked];
  if (unknown.length === 0) return;
  throw new ConfigError(
    `deputy.config.ts is invalid:\n  ${unknown.join("\n  ")}\n  the tools are: ${known.join(", ")}`,
  );
}
