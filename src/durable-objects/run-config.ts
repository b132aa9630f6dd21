/**
 * LangGraph's config for a run: what the client gave, then what only the server may say. Server keys win, so a client
 * can neither leave its thread nor hand itself an internal handle; nor can it hand one to the factory that builds its
 * run's graph, which is called before LangGraph is.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BuiltGraph } from "../agent/graph-catalog.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { RunCommand } from "../protocol/thread-rpc.ts";

/** LangGraph's private configurable keys start so, and Deputy's own, such as a child's depth; a client's are dropped. */
const PRIVATE_PREFIXES = ["__", "deputy_"] as const;

/** Who the run is and where it starts: a client names a checkpoint in the body, where it is checked. */
const SERVER_KEYS = new Set([
  "thread_id",
  "run_id",
  "assistant_id",
  "graph_id",
  "checkpoint_id",
  "checkpoint_ns",
  "checkpoint_map",
]);

/** What of a run its graph is built with. */
export type BuildingRun = Pick<RunRecord, "runId" | "graphId" | "command">;

export function runConfig(run: RunRecord, built: BuiltGraph): RunnableConfig {
  const { body } = run.command;
  const server = serverKeys(run);
  return {
    configurable: { ...runConfigurable(run), ...built.configurable, ...server },
    metadata: { ...body.config?.metadata, ...body.metadata, ...server },
    tags: body.config?.tags ?? [],
    recursionLimit: built.recursionLimit,
  };
}

/** What the graph of a run is built with. */
export function buildConfig(run: BuildingRun): RunnableConfig {
  const recursionLimit = run.command.body.config?.recursion_limit;
  return { configurable: runConfigurable(run), ...(recursionLimit === undefined ? {} : { recursionLimit }) };
}

/** What the graph of a create that is no run yet is built with: to look at, not to run. */
export function createConfig(command: RunCommand): RunnableConfig {
  return buildConfig({ runId: "", graphId: command.graph_id, command });
}

/** The client's keys (its context over its configurable over its headers), and who the run is. */
function runConfigurable(run: BuildingRun): Record<string, unknown> {
  const { body, headers } = run.command;
  const given = Object.entries({ ...headers, ...body.config?.configurable, ...body.context });
  return { ...Object.fromEntries(given.filter(([key]) => isClientKey(key))), ...serverKeys(run) };
}

function serverKeys(run: BuildingRun) {
  return { run_id: run.runId, assistant_id: run.command.body.assistant_id, graph_id: run.graphId };
}

function isClientKey(key: string): boolean {
  return !SERVER_KEYS.has(key) && !PRIVATE_PREFIXES.some((prefix) => key.startsWith(prefix));
}
