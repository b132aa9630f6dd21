/**
 * `/subagents`: what callers may delegate to, and the managed definitions behind it. Writes need the role admin; a caller
 * without it sees what they may use, without prompts. Owns the precedence as readers see it: it is found at each read,
 * so a definition is shadowed as soon as configuration takes its name.
 */
import { z } from "zod";
import { acpDefinition } from "../../domain/delegation/acp-definition.ts";
import type {
  ManagedDefinition,
  ManagedRefusal,
  ManagedSubagent,
  StoredSubagent,
} from "../../domain/delegation/managed-subagent.ts";
import { unreachable } from "../../domain/shared/assert.ts";
import type { Result } from "../../domain/shared/result.ts";
import { clientIdSchema } from "../../protocol/identifiers.ts";
import {
  createSubagentBodySchema,
  managedSubagentSchema,
  type ManagedSubagentView,
  type SubagentDefinitionBody,
  type SubagentSummary,
  subagentSummarySchema,
  updateSubagentBodySchema,
} from "../../protocol/subagents.ts";
import { empty, json } from "../answers.ts";
import { JSON_BODY_BYTES_MAX } from "../bounds.ts";
import { refuse } from "../errors.ts";
import { type Answer, type Call, operation } from "../operation.ts";
import type { GatewayDeps } from "../ports.ts";

const subagentParams = z.object({ name: clientIdSchema });
const subagentSchema = z.union([managedSubagentSchema, subagentSummarySchema]);

const list = operation({
  method: "get",
  path: "/subagents",
  id: "listSubagents",
  tag: "subagents",
  summary: "Subagents in the order a lead is shown them; administrators also see what is disabled or shadowed.",
  responses: { 200: { description: "All of them; there is a bound.", schema: z.array(subagentSchema) } },
  handle: async ({ principal, deps: { subagents } }) => {
    const operators = subagents.operators();
    if (principal.role !== "admin") {
      const enabled = await subagents.managed.systemListEnabled();
      return json([...operators, ...enabled.filter(isUsable(operators)).map(toSummary)]);
    }
    const stored = await subagents.managed.systemList();
    return json([...operators, ...stored.map((each) => toView(each, operators))]);
  },
});

const get = operation({
  method: "get",
  path: "/subagents/:name",
  id: "getSubagent",
  tag: "subagents",
  summary: "One subagent; administrators get the stored definition where there is one.",
  params: subagentParams,
  responses: { 200: { description: "The subagent.", schema: subagentSchema } },
  errors: ["not_found"],
  handle: async ({ params, principal, deps: { subagents } }) => {
    const operators = subagents.operators();
    const owned = operators.find(({ name }) => name === params.name);
    if (owned !== undefined && principal.role !== "admin") return json(owned);
    const stored = await subagents.managed.systemFind(params.name);
    if (stored !== undefined && principal.role === "admin") return json(toView(stored, operators));
    if (owned !== undefined) return json(owned);
    return stored?.enabled === true ? json(toSummary(stored)) : missing();
  },
});

const create = operation({
  method: "post",
  path: "/subagents",
  id: "createSubagent",
  tag: "subagents",
  summary: "Stores a managed definition. A name owned by a built-in or by configuration is stored and marked shadowed.",
  role: "admin",
  body: { schema: createSubagentBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 201: { description: "Stored.", schema: managedSubagentSchema } },
  errors: ["already_exists"],
  handle: async (call) => {
    const { name, enabled, ...definition } = call.body;
    const subagent = { name, enabled, definition: toDefinition(definition) };
    const created = await call.deps.subagents.managed.systemCreate(subagent, changeOf(call));
    return answerStored(created, { name, deps: call.deps, status: 201 });
  },
});

const update = operation({
  method: "put",
  path: "/subagents/:name",
  id: "updateSubagent",
  tag: "subagents",
  summary: "Replaces a managed definition of the version that was read.",
  role: "admin",
  params: subagentParams,
  body: { schema: updateSubagentBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 200: { description: "Replaced; its version is one more.", schema: managedSubagentSchema } },
  errors: ["not_found", "version_conflict"],
  handle: async (call) => {
    const { version, ...definition } = call.body;
    const { name } = call.params;
    const subagent = { name, version, definition: toDefinition(definition) };
    const updated = await call.deps.subagents.managed.systemUpdate(subagent, changeOf(call));
    return answerStored(updated, { name, deps: call.deps });
  },
});

const enable = toggle("enable", "enableSubagent", "Offers a managed definition to runs accepted from now on.");
const disable = toggle("disable", "disableSubagent", "Keeps a managed definition and no longer offers it.");

function toggle(action: "enable" | "disable", id: string, summary: string) {
  return operation({
    method: "post",
    path: `/subagents/:name/${action}`,
    id,
    tag: "subagents",
    summary,
    role: "admin",
    params: subagentParams,
    responses: { 200: { description: "As it now stands.", schema: managedSubagentSchema } },
    errors: ["not_found"],
    handle: async (call) => {
      const { name } = call.params;
      const set = await call.deps.subagents.managed.systemSetEnabled(name, action === "enable", changeOf(call));
      return answerStored(set, { name, deps: call.deps });
    },
  });
}

const remove = operation({
  method: "delete",
  path: "/subagents/:name",
  id: "deleteSubagent",
  tag: "subagents",
  summary: "Removes a managed definition; runs and batches that were accepted with it keep theirs.",
  role: "admin",
  params: subagentParams,
  responses: { 204: { description: "Removed." } },
  errors: ["not_found"],
  handle: async ({ params, deps }) =>
    (await deps.subagents.managed.systemDelete(params.name)) ? empty(204) : missing(),
});

export const subagentOperations = [list, get, create, update, enable, disable, remove] as const;

function missing(): Answer {
  return refuse("not_found", "Subagent not found");
}

function changeOf({ principal, deps }: Pick<Call<unknown, unknown, unknown>, "principal" | "deps">) {
  return { by: principal.owner, now: deps.now() };
}

function answerStored(
  result: Result<StoredSubagent, ManagedRefusal>,
  { name, deps, status = 200 }: { name: string; deps: GatewayDeps; status?: number },
): Answer {
  return result.ok ? json(toView(result.value, deps.subagents.operators()), { status }) : toRefusal(result.error, name);
}

function toRefusal(refusal: ManagedRefusal, name: string): Answer {
  switch (refusal.reason) {
    case "not_found":
      return missing();
    case "already_exists":
      return refuse("already_exists", `A definition named '${name}' is stored already.`);
    case "version_conflict":
      return refuse("version_conflict", `It changed since it was read: it is at version ${refusal.version}.`, {
        version: refusal.version,
      });
    case "too_many":
      return refuse("invalid_request", `At most ${refusal.limit} definitions are stored.`, { limit: refusal.limit });
    case "too_large":
      return refuse("too_large", `All definitions together are larger than ${refusal.limit} bytes.`, {
        limit_bytes: refusal.limit,
      });
    default:
      return unreachable(refusal);
  }
}

function ownerOf(name: string, operators: readonly SubagentSummary[]): ManagedSubagentView["shadowed_by"] {
  const source = operators.find((each) => each.name === name)?.source;
  return source === "built_in" || source === "config" ? source : null;
}

function isUsable(operators: readonly SubagentSummary[]) {
  return ({ name }: ManagedSubagent): boolean => ownerOf(name, operators) === null;
}

function toSummary({ name, definition }: ManagedSubagent): SubagentSummary {
  return { name, source: "managed", description: definition.description };
}

function toView(stored: StoredSubagent, operators: readonly SubagentSummary[]): ManagedSubagentView {
  const { name, version, enabled, definition } = stored;
  return {
    name,
    source: "managed",
    version,
    enabled,
    shadowed_by: ownerOf(name, operators),
    ...toBody(definition),
    created_at: new Date(stored.createdAt).toISOString(),
    updated_at: new Date(stored.updatedAt).toISOString(),
    updated_by: stored.updatedBy,
  };
}

function toAcpDefinition(body: Extract<SubagentDefinitionBody, { provider: "acp" }>): ManagedDefinition {
  return acpDefinition({ description: body.description, timeoutSeconds: body.timeout_seconds, acp: body.acp });
}

function toDefinition(body: SubagentDefinitionBody): ManagedDefinition {
  if (body.provider === "acp") return toAcpDefinition(body);
  return {
    description: body.description,
    systemPrompt: body.system_prompt,
    tools: body.tools,
    disallowedTools: body.disallowed_tools,
    model: body.model,
    maxTurns: body.max_turns,
    timeoutSeconds: body.timeout_seconds,
    provider: body.provider,
    maxDepth: body.max_depth,
  };
}

function toBody(definition: ManagedDefinition): SubagentDefinitionBody {
  const { description, acp, timeoutSeconds: timeout_seconds } = definition;
  if (acp !== undefined) return { description, timeout_seconds, provider: "acp", acp: { ...acp } };
  return {
    description,
    system_prompt: definition.systemPrompt,
    tools: definition.tools === null ? null : [...definition.tools],
    disallowed_tools: [...definition.disallowedTools],
    model: definition.model,
    max_turns: definition.maxTurns,
    timeout_seconds,
    // What is stored passed the shape above.
    provider: definition.provider as "spawn" | "fork",
    max_depth: definition.maxDepth,
  };
}
