/**
 * Which assistant an id means, and which ones a caller sees: the deployment's (each graph's default one, and the operator's
 * agents, under their graph's or their own name as well) before the owner's stored ones. An owner's row whose id the
 * deployment takes later is kept and unseen until the id is free again.
 */
import type { OperatorAgent } from "../domain/assistant/agent-snapshot.ts";
import type { StoredAssistant, StoredAssistantVersion } from "../domain/assistant/assistant.ts";
import { type Result, ok } from "../domain/shared/result.ts";
import type { Assistant, AssistantVersion, CountAssistantsBody, SearchAssistantsBody } from "../protocol/assistants.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import { refuse } from "./errors.ts";
import type { GatewayDeps, GraphDescription } from "./ports.ts";

/** The deployment's assistants exist as long as it has them; nobody created them. */
const ALWAYS = "1970-01-01T00:00:00.000Z";

export type AssistantDeps = Pick<GatewayDeps, "graphs" | "assistantId" | "assistants" | "operatorAgents">;

export interface FoundAssistant {
  readonly assistant: Assistant;
  /** Whose it is; `operator` is set when it is an agent of the operator's. */
  readonly of: "deployment" | "owner";
  readonly operator?: OperatorAgent;
}

/** Null for an id that is the owner's to give. */
export function findSystemAssistant(deps: AssistantDeps, id: string): FoundAssistant | null {
  return systemAssistants(deps).find(({ alias, assistant }) => alias === id || assistant.assistant_id === id) ?? null;
}

/** A row is read only for an id that the deployment does not have. */
export async function findAssistant(
  deps: AssistantDeps,
  owner: string,
  id: string,
): Promise<Result<FoundAssistant, ApiRefusal>> {
  const system = findSystemAssistant(deps, id);
  if (system !== null) return ok(system);
  const stored = await deps.assistants.find(owner, id);
  return stored === undefined ? noAssistant() : ok({ assistant: toAssistant(stored), of: "owner" });
}

export function noAssistant() {
  return refuse("not_found", "Assistant not found");
}

/** The whole match, sorted; the caller cuts the page. */
export async function searchAssistants(
  deps: AssistantDeps,
  owner: string,
  query: CountAssistantsBody & Partial<Pick<SearchAssistantsBody, "sort_by" | "sort_order">>,
): Promise<Assistant[]> {
  const system = systemAssistants(deps);
  const taken = new Set(system.flatMap(({ alias, assistant }) => [alias, assistant.assistant_id]));
  const stored = await deps.assistants.list(owner);
  const own = stored.filter(({ assistantId }) => !taken.has(assistantId)).map(toAssistant);
  const matches = [...system.map(({ assistant }) => assistant), ...own].filter((each) => isMatch(each, query));
  const sortBy = query.sort_by ?? "created_at";
  const sign = query.sort_order === "asc" ? 1 : -1;
  // Name, then id settle ties, so that pages neither repeat nor skip.
  return matches.sort(
    (left, right) =>
      sign * compare(left[sortBy], right[sortBy]) ||
      compare(left.name, right.name) ||
      compare(left.assistant_id, right.assistant_id),
  );
}

/** Newest first. The deployment's have the one that configuration has now. */
export async function listVersions(
  deps: AssistantDeps,
  owner: string,
  { id, metadata }: { readonly id: string; readonly metadata?: Record<string, unknown> | null | undefined },
): Promise<Result<AssistantVersion[], ApiRefusal>> {
  const found = await findAssistant(deps, owner, id);
  if (!found.ok) return found;
  const { assistant, of } = found.value;
  const kept = of === "owner" ? (await deps.assistants.versions(owner, id)).map(toVersion) : [];
  // The row of a Worker from before versions stands nowhere else.
  const isKept = kept.some(({ version }) => version === assistant.version);
  const { updated_at, ...current } = assistant;
  const all = isKept ? kept : [{ ...current, created_at: updated_at }, ...kept];
  return ok(all.filter((each) => contains(each.metadata, metadata ?? {})));
}

/** The assistant's graph as its runs would get it. */
export async function describeAssistant(
  deps: AssistantDeps,
  owner: string,
  id: string,
): Promise<Result<GraphDescription, ApiRefusal>> {
  const found = await findAssistant(deps, owner, id);
  if (!found.ok) return found;
  const { graph_id: graphId, config, context } = found.value.assistant;
  const { configurable } = config as { configurable?: Record<string, unknown> };
  const described = await deps.graphs.describe(graphId, { configurable: { ...configurable, ...context } });
  if (described.ok) return described;
  return refuse("invalid_request", `Graph '${graphId}' cannot be had for this assistant: ${described.error.message}`);
}

function toVersion(stored: StoredAssistantVersion): AssistantVersion {
  const { updated_at: _none, ...version } = toAssistant({ ...stored, updatedAt: stored.createdAt });
  return version;
}

export function toAssistant(stored: StoredAssistant): Assistant {
  return {
    assistant_id: stored.assistantId,
    graph_id: stored.graphId,
    name: stored.name,
    description: stored.description,
    config: { ...stored.config },
    context: { ...stored.context },
    metadata: { ...stored.metadata },
    version: stored.version,
    created_at: new Date(stored.createdAt).toISOString(),
    updated_at: new Date(stored.updatedAt).toISOString(),
  };
}

interface SystemAssistant extends FoundAssistant {
  /** Accepted wherever its id is. */
  readonly alias: string;
}

function systemAssistants(deps: AssistantDeps): SystemAssistant[] {
  const graphs = deps.graphs.graphs().map((graph): SystemAssistant => {
    const assistant = { ...toSystem(deps, graph.graph_id), graph_id: graph.graph_id, name: graph.name };
    return { alias: graph.graph_id, of: "deployment", assistant: { ...assistant, description: graph.description } };
  });
  const agents = deps.operatorAgents.map((operator): SystemAssistant => {
    const { name, description } = operator;
    const assistant = { ...toSystem(deps, name), graph_id: LEAD_GRAPH_ID, name, description };
    return { alias: name, of: "deployment", operator, assistant: { ...assistant, config: toConfig(operator) } };
  });
  return [...graphs, ...agents];
}

function toSystem({ assistantId }: AssistantDeps, name: string) {
  return {
    assistant_id: assistantId(name),
    config: {},
    context: {},
    metadata: { created_by: "system" },
    version: 1,
    created_at: ALWAYS,
    updated_at: ALWAYS,
  };
}

/** What callers may know of an operator's agent: its instructions are not shown, as no operator's text is. */
function toConfig({ model, allowedSubagents }: OperatorAgent): Assistant["config"] {
  return {
    configurable: {
      ...(model === undefined ? {} : { model_name: model }),
      ...(allowedSubagents === null ? {} : { allowed_subagents: [...allowedSubagents] }),
    },
  };
}

function isMatch(assistant: Assistant, { graph_id, name, metadata }: CountAssistantsBody): boolean {
  return (
    (graph_id ?? assistant.graph_id) === assistant.graph_id &&
    (name == null || assistant.name.toLowerCase().includes(name.toLowerCase())) &&
    contains(assistant.metadata, metadata ?? {})
  );
}

/** JSON containment, as the reference API's search has it: objects by key, lists by element, anything else by value. */
function contains(held: unknown, asked: unknown): boolean {
  if (typeof asked !== "object" || asked === null) return held === asked;
  if (typeof held !== "object" || held === null || Array.isArray(held) !== Array.isArray(asked)) return false;
  if (Array.isArray(asked)) return asked.every((each) => (held as unknown[]).some((one) => contains(one, each)));
  return Object.entries(asked).every(([key, value]) =>
    Object.hasOwn(held, key) ? contains((held as Record<string, unknown>)[key], value) : false,
  );
}

function compare(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
