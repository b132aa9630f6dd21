/**
 * Holds a run to its delegation limits (delegation-behaviour 5.4; a cut is visible, by contract). A call that no answer
 * brought through here, such as one written into the thread's state, is not run: it was counted by nobody.
 * Must come after the ledger in the chain: `afterModel` runs in reverse, so calls cut here never reach the ledger, and the
 * ledger's entries are those of earlier answers only.
 */
import type { AIMessage } from "@langchain/core/messages";
import { decideCut, type DelegationLimits } from "../../domain/delegation/delegation-limit.ts";
import { countRunDelegations, type LedgerEntry } from "../../domain/delegation/ledger.ts";
import { CODE_POINTS } from "../../domain/shared/cut-text.ts";
import { RUN_STOP_REASON_KEY, type RunStopReason } from "../../domain/run/stop-reason.ts";
import type { AgentHook } from "./hook.ts";
import { stripCalls } from "./strip-calls.ts";
import { ToolCallRefusal } from "./tool-errors.ts";

const LIMIT_REACHED: RunStopReason = "subagent_limit_capped";

/** The chain's limit hook, with what it holds a run to. */
export interface SubagentLimitHook extends AgentHook {
  readonly limits: DelegationLimits;
}

/** `onUntaggedRun`: an answer asks for delegations and nobody said which run it belongs to (R190). */
export function subagentLimit(limits: DelegationLimits, onUntaggedRun: () => void): SubagentLimitHook {
  return {
    name: "subagent_limit",
    limits,
    afterModel(answer, state, { runId }) {
      const calls = taskCallsOf(answer);
      if (calls.length === 0) return undefined;
      if (runId === undefined) onUntaggedRun();
      const cut = decideCut(calls, countRunDelegations(state.delegations ?? [], runId), limits);
      if (cut === undefined) return undefined;
      const stripped = stripCalls(answer, cut.cutIds, cut.note);
      if (cut.exhausted) stripped.additional_kwargs[RUN_STOP_REASON_KEY] = LIMIT_REACHED;
      return { answer: stripped };
    },
    async wrapToolCall(request, next) {
      const { id, name } = request.call;
      if (name === "task" && !isDispatched(request.state().delegations ?? [], id)) throw new ToolCallRefusal(UNCOUNTED);
      return next(request);
    },
  };
}

const UNCOUNTED =
  "this 'task' call was made by no answer of the model here, so it counts toward no limit and is not run";

function isDispatched(entries: readonly LedgerEntry[], id: string): boolean {
  return entries.some((entry) => entry.id === id && entry.status === "in_progress");
}

function taskCallsOf(answer: AIMessage): { id: string; description: string }[] {
  return (answer.tool_calls ?? []).flatMap((call) => {
    if (call.name !== "task" || call.id === undefined) return [];
    const { description, prompt } = call.args as { description?: unknown; prompt?: unknown };
    const label = [description, prompt, call.id].find((text) => typeof text === "string" && text.trim() !== "");
    return [{ id: call.id, description: CODE_POINTS.first(String(label), LABEL_CHARS_MAX) }];
  });
}

/** A name in a note, not the job. */
const LABEL_CHARS_MAX = 80;
