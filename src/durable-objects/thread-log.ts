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
    content: { graph_id: run.graphId, assistant_id: run.command.body.assistant_id },
    metadata: {},
  };
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
