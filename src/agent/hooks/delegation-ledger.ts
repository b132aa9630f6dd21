/**
 * Keeps the delegation ledger: the `delegations` channel, and its place in requests (delegation-behaviour 5).
 * Owns when entries are written: a dispatch with the answer that made it, a result with the tool message that brought it.
 * Invariant: an entry has the id of the run that dispatched it; older runs' calls are never taken for this run's (R47).
 */
import { isAIMessage, isHumanMessage, isToolMessage, type BaseMessage } from "@langchain/core/messages";
import {
  callsNotEvicted,
  decideDispatches,
  decideResults,
  type DispatchedCall,
} from "../../domain/delegation/ledger.ts";
import { toDelegationKwargs } from "../../domain/delegation/delegation-result.ts";
import { findRunStart, type BoundaryMessage } from "../../domain/delegation/run-boundary.ts";
import { preRunMessageIds } from "../graph/pre-run-messages.ts";
import { readThreadState } from "../graph/read-thread-state.ts";
import { DELEGATION_ENTRIES_MAX } from "../thread-state/merge-delegations.ts";
import type { DelegationEntry, ThreadState } from "../thread-state/thread-state.ts";
import { sha256 } from "../sha256.ts";
import { withDurableContext } from "./durable-context.ts";
import type { AgentHook, HookContext, ToolCallResult } from "./hook.ts";
import { mustEscape, toolErrorResult } from "./tool-errors.ts";

export interface LedgerServices {
  newId(): string;
  /** Milliseconds since the epoch. */
  now(): number;
}

/** `catalogue`: the run's managed subagents, rendered; "" for none. They ride in the same message, being data as well. */
export function delegationLedger(services: LedgerServices, catalogue = ""): AgentHook {
  return {
    name: "delegation_ledger",
    /** Results that came another way than through `wrapToolCall`: a cancelled run's, an older store's. */
    async beforeModel(state, context) {
      const known = state.delegations ?? [];
      const missed = await missedDispatches(state, context, services);
      return toUpdate(decideResults(resultsIn(state.messages), [...known, ...missed], sha256));
    },
    wrapModelCall(request, next, { config }) {
      const { delegations, summary_text: summary } = readThreadState(config);
      return next({ ...request, messages: withDurableContext(request.messages, { catalogue, summary, delegations }) });
    },
    async wrapToolCall(request, next, context) {
      if (request.call.name !== "task") return next(request);
      const result = await next(request).catch((error: unknown) => {
        if (mustEscape(error, context.config)) throw error;
        return failedTask(
          toolErrorResult(request.call, error, () => services.newId()),
          error,
        );
      });
      return withLedgerEntry(result, request.state());
    },
    afterModel(answer, state, { runId }) {
      const stamp = { runId, createdAt: timestamp(services) };
      const update = toUpdate(decideDispatches(taskCalls(answer), state.delegations ?? [], stamp));
      return update === undefined ? undefined : { update };
    },
  };
}

/**
 * Dispatches of this run that came another way than through its answers. They enter the ledger with their result only:
 * a call that no tool will ever answer must not stand there as under way.
 */
async function missedDispatches(state: ThreadState, { runId, config }: HookContext, services: LedgerServices) {
  const known = state.delegations ?? [];
  const knownIds = new Set(known.map((entry) => entry.id));
  const isMissed = ({ id }: DispatchedCall) => !knownIds.has(id);
  // Asked first: what stood before the run is loaded only when it matters.
  if (!state.messages.flatMap(taskCalls).some(isMissed)) return [];
  const start = findRunStart(state.messages.map(toBoundary), runId, await preRunMessageIds(config));
  const calls = callsNotEvicted(state.messages.slice(start).flatMap(taskCalls), known, DELEGATION_ENTRIES_MAX);
  return decideDispatches(calls, known, { runId, createdAt: timestamp(services) });
}

function taskCalls(message: BaseMessage): DispatchedCall[] {
  if (!isAIMessage(message)) return [];
  return (message.tool_calls ?? []).flatMap(({ id, name, args }) =>
    name === "task" && id !== undefined ? [{ id, args }] : [],
  );
}

function toBoundary(message: BaseMessage): BoundaryMessage {
  const { run_id: runId, hide_from_ui: hidden } = message.additional_kwargs;
  return {
    id: message.id,
    isHuman: isHumanMessage(message),
    isHidden: hidden === true,
    runId: typeof runId === "string" ? runId : undefined,
  };
}

function timestamp(services: LedgerServices): string {
  return new Date(services.now()).toISOString();
}

/** A `task` call's result with what the ledger makes of it, for one commit. */
export function withLedgerEntry(result: ToolCallResult, { delegations = [] }: ThreadState): ToolCallResult {
  const entries = decideResults(resultsIn([result.message]), delegations, sha256);
  return entries.length === 0 ? result : { ...result, update: { ...result.update, ...toUpdate(entries) } };
}

function toUpdate(entries: readonly DelegationEntry[]): { delegations: DelegationEntry[] } | undefined {
  return entries.length === 0 ? undefined : { delegations: [...entries] };
}

function resultsIn(messages: readonly BaseMessage[]) {
  return messages.filter(isToolMessage).map((message) => ({
    toolCallId: message.tool_call_id,
    messageId: message.id,
    kwargs: message.additional_kwargs,
  }));
}

/** A call that failed before the tool could answer (bad arguments) is a failed delegation all the same. */
function failedTask(result: ToolCallResult, error: unknown): ToolCallResult {
  const text = error instanceof Error ? error.message : String(error);
  Object.assign(result.message.additional_kwargs, toDelegationKwargs({ status: "failed", error: text }));
  return result;
}
