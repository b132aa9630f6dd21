/**
 * Holds a run to its delegation limits (delegation-behaviour 5.4; a cut is visible, by contract).
 * Must come after the ledger in the chain: `afterModel` runs in reverse, so calls cut here never reach the ledger, and the
 * ledger's entries are those of earlier answers only.
 */
import type { AIMessage } from "@langchain/core/messages";
import { decideCut, type DelegationLimits } from "../../domain/delegation/delegation-limit.ts";
import { countRunDelegations } from "../../domain/delegation/ledger.ts";
import type { AgentHook } from "./hook.ts";
import { stripCalls } from "./strip-calls.ts";

/** Marks the answer whose run ended for want of delegations; the run record's stop reason. */
export const LIMIT_STOP_REASON_KEY = "deputy_run_stop_reason";

export function subagentLimit(limits: DelegationLimits, onUntaggedRun?: () => void): AgentHook {
  return {
    name: "subagent_limit",
    afterModel(answer, state, { runId }) {
      const calls = taskCallsOf(answer);
      if (calls.length === 0) return undefined;
      if (runId === undefined) onUntaggedRun?.();
      const cut = decideCut(calls, countRunDelegations(state.delegations ?? [], runId), limits);
      if (cut === undefined) return undefined;
      const stripped = stripCalls(answer, cut.cutIds, cut.note);
      if (cut.exhausted) stripped.additional_kwargs[LIMIT_STOP_REASON_KEY] = "subagent_limit_capped";
      return { answer: stripped };
    },
  };
}

function taskCallsOf(answer: AIMessage): { id: string; description: string }[] {
  return (answer.tool_calls ?? []).flatMap((call) => {
    if (call.name !== "task" || call.id === undefined) return [];
    const { description, prompt } = call.args as { description?: unknown; prompt?: unknown };
    const label = [description, prompt, call.id].find((text) => typeof text === "string" && text.trim() !== "");
    return [{ id: call.id, description: String(label).slice(0, LABEL_CHARS_MAX) }];
  });
}

/** A name in a note, not the job. */
const LABEL_CHARS_MAX = 80;
