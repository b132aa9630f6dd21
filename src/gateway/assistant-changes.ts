/**
 * Creating, changing and deleting an owner's assistants. Owns the rules of a change: the deployment's assistants are
 * neither changed nor deleted, a graph must exist, what a custom agent's options may hold, and how fields are merged.
 */
import { type AgentOptionPlaces, type AgentOptions, parseAgentOptions } from "../domain/assistant/agent-snapshot.ts";
import type { AssistantFields, AssistantRefusal, StoredAssistant } from "../domain/assistant/assistant.ts";
import { unreachable } from "../domain/shared/assert.ts";
import { err, ok, type Result } from "../domain/shared/result.ts";
import {
  type Assistant,
  type CreateAssistantBody,
  type PatchAssistantBody,
  UNNAMED_ASSISTANT,
} from "../protocol/assistants.ts";
import type { Principal } from "../domain/trust/principal.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import { type AssistantDeps, findSystemAssistant, noAssistant, toAssistant } from "./assistants.ts";
import { refuse } from "./errors.ts";
import { checkLeadOptions } from "./lead-options.ts";
import { refusePlace } from "./run-place.ts";
import { deleteThreadsOf } from "./thread-deletion.ts";
import type { GatewayDeps } from "./ports.ts";

type Deps = AssistantDeps & Pick<GatewayDeps, "newId" | "now">;

/** Each try reads the assistant anew; one that others change faster than that is in conflict. */
const PATCH_TRIES_MAX = 5;

export async function createAssistant(
  deps: Deps,
  owner: string,
  body: CreateAssistantBody,
): Promise<Result<Assistant, ApiRefusal>> {
  const { assistant_id, if_exists, graph_id: graphId, name, description, config, context, metadata } = body;
  const fields: AssistantFields = {
    graphId,
    name: name ?? UNNAMED_ASSISTANT,
    description: description ?? null,
    config: config ?? {},
    context: context ?? {},
    metadata: metadata ?? {},
  };
  const valid = validateFields(deps, fields);
  if (!valid.ok) return valid;
  const assistantId = assistant_id ?? deps.newId();
  const system = findSystemAssistant(deps, assistantId);
  if (system !== null) return if_exists === "do_nothing" ? ok(system.assistant) : taken(assistantId);
  const created = await deps.assistants.create(owner, { assistantId, ...fields }, deps.now());
  if (created.ok) return ok(toAssistant(created.value));
  if (created.error.reason === "already_exists" && if_exists === "do_nothing") {
    return ok(toAssistant(created.error.existing));
  }
  return toRefusal(created.error, assistantId);
}

/** A change that another one overtook is made again on what that one left: both are in the end, one after the other. */
export async function patchAssistant(
  deps: Deps,
  owner: string,
  { id, patch }: { readonly id: string; readonly patch: PatchAssistantBody },
): Promise<Result<Assistant, ApiRefusal>> {
  if (findSystemAssistant(deps, id) !== null) return unchangeable(id);
  for (let tries = 0; tries < PATCH_TRIES_MAX; tries += 1) {
    const read = await deps.assistants.find(owner, id);
    if (read === undefined) return noAssistant();
    const next = merged(read, patch);
    const valid = validateFields(deps, next);
    if (!valid.ok) return valid;
    const replaced = await deps.assistants.replace(owner, { read, next }, deps.now());
    if (replaced.ok) return ok(toAssistant(replaced.value));
    if (replaced.error.reason !== "changed") return toRefusal(replaced.error, id);
  }
  return toRefusal({ reason: "changed" }, id);
}

/** An earlier version becomes the current one. It must be one that could be stored now: its graph may be gone by now. */
export async function setLatestVersion(
  deps: Deps,
  owner: string,
  { id, version }: { readonly id: string; readonly version: number },
): Promise<Result<Assistant, ApiRefusal>> {
  if (findSystemAssistant(deps, id) !== null) return unchangeable(id);
  const kept = await deps.assistants.versions(owner, id);
  const chosen = kept.find((each) => each.version === version);
  if (chosen !== undefined) {
    const valid = validateFields(deps, chosen);
    if (!valid.ok) return valid;
  }
  const changed = await deps.assistants.setLatest(owner, { assistantId: id, version }, deps.now());
  return changed.ok ? ok(toAssistant(changed.value)) : toRefusal(changed.error, id);
}

type DeleteDeps = Deps & Pick<GatewayDeps, "threads" | "threadSearch">;

/** Threads first: a call that broke off leaves an assistant by which the next call finds the rest. */
export async function deleteAssistant(
  deps: DeleteDeps,
  principal: Principal,
  { id, deleteThreads }: { readonly id: string; readonly deleteThreads: boolean },
): Promise<Result<null, ApiRefusal>> {
  const { owner } = principal;
  if (findSystemAssistant(deps, id) !== null) return unchangeable(id);
  if (deleteThreads) {
    if ((await deps.assistants.find(owner, id)) === undefined) return noAssistant();
    const deleted = await deleteThreadsOf(deps, principal, { assistant_id: id });
    if (!deleted.ok) return deleted;
  }
  return (await deps.assistants.delete(owner, id)) ? ok(null) : noAssistant();
}

function merged(read: StoredAssistant, patch: PatchAssistantBody): AssistantFields {
  return {
    graphId: patch.graph_id ?? read.graphId,
    name: patch.name ?? read.name,
    description: patch.description ?? read.description,
    config: patch.config ?? read.config,
    context: patch.context ?? read.context,
    metadata: { ...read.metadata, ...patch.metadata },
  };
}

function validateFields(deps: Deps, fields: AssistantFields): Result<null, ApiRefusal> {
  const { graphId, config, context } = fields;
  const graphs = deps.graphs.graphs().map((graph) => graph.graph_id);
  if (!graphs.includes(graphId)) {
    const path = "body.graph_id";
    const message = `there is no graph '${graphId}'; there are: ${graphs.join(", ")}`;
    return refuse("invalid_request", `${path}: ${message}`, { issues: [{ path, message }] });
  }
  const place = refusePlace(config["configurable"]);
  if (place !== undefined) return err(place);
  if (graphId !== LEAD_GRAPH_ID) return ok(null);
  const options = checkLeadOptions(deps.graphs, { config, context });
  if (!options.ok) return options;
  const agent = readAgentOptions({ configurable: config["configurable"], context }, "body");
  return agent.ok ? ok(null) : agent;
}

/** `where` names for the client whose options they are. */
export function readAgentOptions(places: AgentOptionPlaces, where: string): Result<AgentOptions, ApiRefusal> {
  const parsed = parseAgentOptions(places);
  if (parsed.ok) return parsed;
  const { message } = parsed.error;
  const path = `${where}.${parsed.error.path}`;
  return refuse("invalid_request", `${path}: ${message}`, { issues: [{ path, message }] });
}

function unchangeable(id: string) {
  return refuse("forbidden", `Assistant '${id}' belongs to the deployment: it is neither changed nor deleted.`);
}

function taken(id: string) {
  return refuse("already_exists", `Assistant '${id}' exists already.`);
}

function toRefusal(refusal: AssistantRefusal, id: string) {
  switch (refusal.reason) {
    case "not_found":
      return noAssistant();
    case "no_version":
      return refuse("not_found", "Assistant version not found");
    case "already_exists":
      return taken(id);
    case "changed":
      return refuse("version_conflict", `Assistant '${id}' is being changed by others; try again.`);
    case "too_many":
      return refuse("invalid_request", `An owner keeps at most ${refusal.limit} assistants.`, { limit: refusal.limit });
    case "too_large":
      return refuse(
        "too_large",
        `Config, context and metadata of one assistant, and of all together, are bounded: more than ${refusal.limit} bytes.`,
        { limit_bytes: refusal.limit },
      );
    default:
      return unreachable(refusal);
  }
}
