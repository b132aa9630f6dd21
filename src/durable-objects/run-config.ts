/**
 * LangGraph's config for a run: what the client gave, then what only the server may say. Server keys win, so a client
 * can neither leave its thread nor hand itself an internal handle.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BuiltGraph } from "../agent/graph-catalog.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";

/** LangGraph's private configurable keys start so, and Deputy's own, such as a child's depth; a client's are dropped. */
const PRIVATE_PREFIXES = ["__", "deputy_"] as const;

/** Names a checkpoint; forks are not offered yet, so a client cannot set them through `config`. */
const SERVER_KEYS = new Set([
  "thread_id",
  "run_id",
  "assistant_id",
  "graph_id",
  "checkpoint_id",
  "checkpoint_ns",
  "checkpoint_map",
]);

export function runConfig(run: RunRecord, built: BuiltGraph): RunnableConfig {
  const { body, headers } = run.command;
  const given = Object.entries({ ...headers, ...body.config?.configurable }).filter(([key]) => isClientKey(key));
  const server = { run_id: run.runId, assistant_id: body.assistant_id, graph_id: run.graphId };
  return {
    configurable: { ...Object.fromEntries(given), ...built.configurable, ...server },
    metadata: { ...body.metadata, ...server },
    tags: body.config?.tags ?? [],
    recursionLimit: built.recursionLimit,
  };
}

function isClientKey(key: string): boolean {
  return !SERVER_KEYS.has(key) && !PRIVATE_PREFIXES.some((prefix) => key.startsWith(prefix));
}
