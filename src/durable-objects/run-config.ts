/**
 * LangGraph's config for a run: what the client gave, then what only the server may say. Server keys win, so a client
 * can neither leave its thread nor hand itself an internal handle.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BuiltGraph } from "../agent/graph-catalog.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";

/** LangGraph's private configurable keys start so; a client's are dropped. */
const PRIVATE_PREFIX = "__";

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
  const given = Object.entries(body.config?.configurable ?? {}).filter(
    ([key]) => !key.startsWith(PRIVATE_PREFIX) && !SERVER_KEYS.has(key),
  );
  const server = { run_id: run.runId, assistant_id: body.assistant_id, graph_id: run.graphId };
  return {
    configurable: { ...headers, ...Object.fromEntries(given), ...built.configurable, ...server },
    metadata: { ...body.metadata, ...server },
    tags: body.config?.tags ?? [],
    recursionLimit: built.recursionLimit,
  };
}
