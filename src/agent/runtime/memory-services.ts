/**
 * The surroundings of an agent graph in this process: a workspace in memory, and how often each call ran.
 */
import type { AgentServices } from "../graph/agent-services.ts";
import { ScratchWorkspace } from "../tools/scratch-workspace.ts";
import { RecentMap } from "./recent-map.ts";

/** A call is asked for again only while its run is open, so the newest ones are enough. */
export const CALL_ATTEMPTS_KEPT_MAX = 1_000;

export function memoryServices(newId: () => string, now: () => number = Date.now): AgentServices {
  const attempts = new RecentMap<number>(CALL_ATTEMPTS_KEPT_MAX);
  return {
    workspace: new ScratchWorkspace({ files: [], now }),
    toolAttempt(toolCallId) {
      const attempt = (attempts.get(toolCallId) ?? 0) + 1;
      attempts.set(toolCallId, attempt);
      return attempt;
    },
    newId,
    now,
  };
}
