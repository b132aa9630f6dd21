/**
 * What the service checks of a request, in this order, before a provider sees it (subagent-seam 1.3): a provider may trust
 * what it is given (R154). An option is set when it is not `undefined`; what is set is honoured or refused (R139).
 */
import { checkOutputSchema } from "../../domain/output-schema/check-output-schema.ts";
import type { SubagentProvider, SubagentRequest } from "./provider.ts";
import { SubagentError } from "./subagent-error.ts";

/** Throws `SubagentError`, or `TypeError` for a value that is no value of its option. */
export function checkRequest(provider: SubagentProvider, request: SubagentRequest): void {
  checkCapabilities(provider, request);
  checkDepthValue(request);
  checkSchema(request);
  checkToolFilter(request);
  checkDepth(request);
}

/** Capabilities in the order they are checked, each with the request's field that needs it. */
const CAPABILITY_FIELDS = [
  ["outputSchema", "outputSchema"],
  ["depthLimit", "maxDepth"],
  ["toolFilter", "toolFilter"],
  ["persona", "persona"],
] as const;

function checkCapabilities(provider: SubagentProvider, request: SubagentRequest): void {
  for (const [capability, field] of CAPABILITY_FIELDS) {
    if (request[field] === undefined || provider.capabilities[capability]) continue;
    throw new SubagentError("UNSUPPORTED_CAPABILITY", `provider '${provider.name}' does not support ${capability}`);
  }
}

function checkDepthValue({ maxDepth }: SubagentRequest): void {
  if (maxDepth === undefined) return;
  if (Number.isSafeInteger(maxDepth) && maxDepth >= 0 && !Object.is(maxDepth, -0)) return;
  throw new TypeError(`maxDepth must be a non-negative integer, got ${String(maxDepth)}`);
}

function checkSchema({ outputSchema }: SubagentRequest): void {
  if (outputSchema === undefined) return;
  const violations = checkOutputSchema(outputSchema);
  if (violations.length > 0) throw new SubagentError("UNSUPPORTED_SCHEMA", violations.join("\n"));
}

/** A misspelt name would give the child a tool it must not have, or take one it needs. */
function checkToolFilter({ toolFilter, agent }: SubagentRequest): void {
  if (toolFilter === undefined) return;
  const { allow, deny } = toolFilter;
  if (allow === undefined && deny === undefined) throw new TypeError("toolFilter has neither 'allow' nor 'deny'");
  const known = agent.tools.map(({ name }) => name);
  const unknown = [...(allow ?? []), ...(deny ?? [])].filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw new TypeError(
    `toolFilter names ${unknown.map((name) => `'${name}'`).join(", ")}; '${agent.name}' has: ${known.join(", ") || "none"}`,
  );
}

function checkDepth({ maxDepth, parent }: SubagentRequest): void {
  const depth = parent.depth + 1;
  if (maxDepth === undefined || depth <= maxDepth) return;
  throw new SubagentError("DEPTH_EXCEEDED", `a child of '${parent.name}' would be at depth ${depth}, past ${maxDepth}`);
}
