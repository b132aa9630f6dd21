/** Which thread a graph runs in, by its config. Owns what counts as none. */
import type { RunnableConfig } from "@langchain/core/runnables";

export function threadIdOf(config: RunnableConfig): string | undefined {
  const threadId: unknown = config.configurable?.["thread_id"];
  return typeof threadId === "string" ? threadId : undefined;
}
