/**
 * Which messages stood in the thread before the run (R46): the driver knows, hooks ask. A function, so that nothing is
 * loaded for the many runs in which nobody asks.
 */
import type { RunnableConfig } from "@langchain/core/runnables";

export type PreRunMessageIds = () => Promise<ReadonlySet<string>>;

/** In `configurable`; a client cannot set it, as no key with this prefix. */
export const PRE_RUN_MESSAGE_IDS_KEY = "deputy_pre_run_message_ids";

/** `undefined` when nobody said. */
export async function preRunMessageIds(config: RunnableConfig): Promise<ReadonlySet<string> | undefined> {
  const ids: unknown = config.configurable?.[PRE_RUN_MESSAGE_IDS_KEY];
  return typeof ids === "function" ? (ids as PreRunMessageIds)() : undefined;
}
