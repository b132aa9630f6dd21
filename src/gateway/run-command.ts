/**
 * From a validated create body to the command a thread's object takes. Owns what an assistant gives its runs: its config,
 * context and metadata lie below the run's own (LangGraph's rule), and a run of the lead agent takes its agent's texts and
 * restrictions along as they are now, so that no later change of the assistant reaches it.
 */
import { AGENT_OPTIONS, narrowSubagents, type AgentSnapshot } from "../domain/assistant/agent-snapshot.ts";
import { type Result, ok } from "../domain/shared/result.ts";
import type { Assistant } from "../protocol/assistants.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { CreateRunBody } from "../protocol/runs.ts";
import type { RunCommand } from "../protocol/thread-rpc.ts";
import { readAgentOptions } from "./assistant-changes.ts";
import { type AssistantDeps, findAssistant, type FoundAssistant } from "./assistants.ts";
import { FORWARDED_HEADER_BYTES_MAX } from "./bounds.ts";
import { refuse } from "./errors.ts";
import { checkLeadOptions } from "./lead-options.ts";
import { withPlaceInBody } from "./run-place.ts";

/** Who starts a run, and what came with the request. */
export interface RunCaller {
  readonly owner: string;
  readonly headers: Headers;
  /** The path's; absent for a run that gets a fresh thread. */
  readonly threadId?: string | undefined;
}

export async function toRunCommand(
  deps: AssistantDeps,
  given: CreateRunBody,
  { owner, headers, threadId }: RunCaller,
): Promise<Result<RunCommand, ApiRefusal>> {
  const placed = withPlaceInBody(given, threadId);
  if (!placed.ok) return placed;
  const body = placed.value;
  const found = await findAssistant(deps, owner, body.assistant_id);
  if (!found.ok) return found;
  const forwarded = forwardedHeaders(headers);
  if (!forwarded.ok) return forwarded;
  const { assistant_id, graph_id, version: assistant_version } = found.value.assistant;
  const command = {
    graph_id,
    assistant_version,
    body: { ...withDefaults(found.value, body), assistant_id },
    headers: forwarded.value,
  };
  if (graph_id !== LEAD_GRAPH_ID) return ok(command);
  const options = checkLeadOptions(deps.graphs, command.body);
  return options.ok ? withAgent(command, found.value, body) : options;
}

type Json = Record<string, unknown>;

/** A field that neither gives stays as the client left it. */
function withDefaults({ assistant, of }: FoundAssistant, body: CreateRunBody): CreateRunBody {
  const given = body.config ?? {};
  const defaults = assistant.config as NonNullable<CreateRunBody["config"]>;
  const configurable = { ...defaults.configurable, ...given.configurable };
  const metadata = { ...defaults.metadata, ...given.metadata };
  const config = {
    ...defaults,
    ...given,
    ...(isEmpty(configurable) ? {} : { configurable }),
    ...(isEmpty(metadata) ? {} : { metadata }),
  };
  const context = { ...contextDefaults(assistant, given.configurable ?? {}), ...body.context };
  // Who made the assistant says nothing of a run: the deployment's mark stays with the deployment's assistants.
  const marks = of === "owner" ? { ...assistant.metadata, ...body.metadata } : { ...body.metadata };
  return {
    ...body,
    ...(isEmpty(config) ? {} : { config }),
    ...(isEmpty(context) ? {} : { context }),
    ...(isEmpty(marks) ? {} : { metadata: marks }),
  };
}

/** A context wins over a configurable; what the run itself says, in either, wins over what the assistant says. */
function contextDefaults({ context }: Assistant, given: Json): Json {
  return Object.fromEntries(Object.entries(context).filter(([key]) => !Object.hasOwn(given, key)));
}

/** The run's own restriction narrows its agent's, its own instructions stand in place of the assistant's. */
function withAgent(
  command: RunCommand,
  { assistant, operator }: FoundAssistant,
  own: CreateRunBody,
): Result<RunCommand, ApiRefusal> {
  const { config, context } = assistant;
  const of = readAgentOptions({ configurable: config["configurable"], context }, "assistant");
  if (!of.ok) return of;
  const given = readAgentOptions({ configurable: own.config?.configurable, context: own.context }, "body");
  if (!given.ok) return given;
  const text = given.value.instructions ?? of.value.instructions ?? "";
  const agent: AgentSnapshot = {
    v: 1,
    assistantVersion: assistant.version,
    instructions: [
      ...(operator === undefined ? [] : [{ trust: "operator" as const, text: operator.instructions }]),
      ...(text.trim() === "" ? [] : [{ trust: "user" as const, text }]),
    ],
    allowedSubagents: narrowSubagents(of.value.allowedSubagents, given.value.allowedSubagents),
    tools: operator?.tools ?? null,
  };
  return ok({ ...command, body: withoutAgentOptions(command.body), agent });
}

/** The snapshot has them: in the config they would go along with every frame of the run. */
function withoutAgentOptions(body: CreateRunBody): CreateRunBody {
  const { config, context } = body;
  return {
    ...body,
    ...(config?.configurable == null
      ? {}
      : { config: { ...config, configurable: withoutKeys(config.configurable, AGENT_OPTIONS) } }),
    ...(context == null ? {} : { context: withoutKeys(context, AGENT_OPTIONS) }),
  };
}

function withoutKeys(record: Json, keys: readonly string[]): Json {
  return Object.fromEntries(Object.entries(record).filter(([key]) => !keys.includes(key)));
}

function isEmpty(record: object): boolean {
  return Object.keys(record).length === 0;
}

/** Credentials, and what proxies add about the caller's network: neither belongs in stored configuration. */
const KEPT_BACK = /^x-(api-key|forwarded-.*|real-ip|request-id)$/;

/** `x-*` headers reach the graph's `config.configurable`, as graphs written for the LangGraph server expect. */
function forwardedHeaders(headers: Headers): Result<Record<string, string>, ApiRefusal> {
  const entries = [...headers].filter(([name]) => name.startsWith("x-") && !KEPT_BACK.test(name));
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (bytes <= FORWARDED_HEADER_BYTES_MAX) return ok(Object.fromEntries(entries));
  const limit = { limit_bytes: FORWARDED_HEADER_BYTES_MAX };
  return refuse("too_large", `The x-* headers are larger than ${FORWARDED_HEADER_BYTES_MAX} bytes.`, limit);
}
