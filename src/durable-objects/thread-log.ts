/**
 * The run events a thread tells by itself, as drafts. Owns their types, categories and contents (delegation-behaviour
 * Appendix B); what mirrors state is derived in `commit-events.ts`.
 * A run has one `run.start` and one terminal event: `run.end`, or `run.error` when it failed. The run row, not the event,
 * is the authority on its status.
 */
import { LEAD_CALLER } from "../domain/run/run-usage.ts";
import type { RunEventDraft } from "../protocol/run-events.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import { toWireMessage } from "../agent/wire/to-wire.ts";
import type { BaseMessage } from "@langchain/core/messages";

export function runStarted(run: RunRecord): RunEventDraft {
  return {
    run_id: run.runId,
    event_type: "run.start",
    category: "trace",
    content: {
      graph_id: run.graphId,
      assistant_id: run.command.body.assistant_id,
      ...(run.notes?.graph_version === undefined ? {} : { graph_version: run.notes.graph_version }),
    },
    metadata: {},
  };
}

/** A run was accepted that waits for its turn; `run.start` follows when it comes. */
export function runQueued(run: RunRecord): RunEventDraft {
  return {
    run_id: run.runId,
    event_type: "run.queued",
    category: "trace",
    content: {
      multitask_strategy: run.command.body.multitask_strategy,
      ...(run.dueAt === undefined ? {} : { due_at: new Date(run.dueAt).toISOString() }),
    },
    metadata: {},
  };
}

/** A run that had ended waiting for an answer waits no more. */
export function runCancelled(run: RunRecord): RunEventDraft {
  const reason = run.cancel?.reason;
  return {
    run_id: run.runId,
    event_type: "run.cancelled",
    category: "trace",
    content: reason === undefined ? {} : { reason },
    metadata: {},
  };
}

/** Never in the log: the flush that meets it takes the run's events out of it. */
export const RUN_GONE = "run.gone";

export function runGone(runId: string): RunEventDraft {
  return { run_id: runId, event_type: RUN_GONE, category: "trace", content: {}, metadata: {} };
}

export function runRecovered(run: RunRecord): RunEventDraft {
  return {
    run_id: run.runId,
    event_type: "run.recovered",
    category: "trace",
    content: { attempt: run.attempt },
    metadata: {},
  };
}

/** With what the run used, so that the log alone answers what a thread costs. */
export function runEnded({ runId, status, error, usage, notes }: RunRecord): RunEventDraft {
  const reason = notes?.stop_reason;
  const used = {
    ...(usage === null || usage.length === 0 ? {} : { usage }),
    ...(reason === undefined ? {} : { stop_reason: reason }),
  };
  return error === null
    ? { run_id: runId, event_type: "run.end", category: "outputs", content: { status, ...used }, metadata: {} }
    : {
        run_id: runId,
        event_type: "run.error",
        category: "error",
        content: { status, ...error, ...used },
        metadata: {},
      };
}

/** Events that change the run's row: a flush that carries one projects the run and the thread. */
export function isLifecycle(eventType: string): boolean {
  return eventType.startsWith("run.");
}

const TYPE_BY_KIND: Readonly<Record<string, string>> = {
  human: "llm.human.input",
  ai: "llm.ai.response",
  tool: "llm.tool.result",
};

/** A message as the thread's feed shows it; `undefined` for kinds the feed does not show. */
export function messageEvent(runId: string, message: BaseMessage): RunEventDraft | undefined {
  const eventType = TYPE_BY_KIND[message.getType()];
  if (eventType === undefined) return undefined;
  return {
    run_id: runId,
    event_type: eventType,
    category: "message",
    content: toWireMessage(message),
    metadata: { caller: LEAD_CALLER },
  };
}
