/**
 * Which run a task belongs to: the driver puts `run_id` into `configurable`, and LangGraph copies it into metadata.
 */
import type { RunnableConfig } from "@langchain/core/runnables";

export function runIdOf(config: RunnableConfig): string | undefined {
  const runId: unknown = config.configurable?.["run_id"] ?? config.metadata?.["run_id"];
  return typeof runId === "string" ? runId : undefined;
}
