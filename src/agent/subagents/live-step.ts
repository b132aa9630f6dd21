/**
 * A child's message as the live `task_running` frame shows it: the wire dict with its texts within the cap of a step, so
 * that one long tool output cannot fill a run's frame budget.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { boundText } from "../../domain/delegation/bounded-text.ts";
import { STEP_CHARS_MAX } from "../../domain/delegation/subagent-steps.ts";
import { CODE_POINTS } from "../../domain/shared/cut-text.ts";
import { toWireMessage } from "../wire/to-wire.ts";

export function toLiveStep(message: BaseMessage): Record<string, unknown> {
  const wire = toWireMessage(message);
  const { tool_calls: calls } = wire;
  return {
    ...wire,
    content: boundContent(message),
    ...(Array.isArray(calls) ? { tool_calls: calls.map(boundCall) } : {}),
  };
}

/** Blocks stay blocks while they are small; past the cap only the text of a message is worth showing. */
function boundContent(message: BaseMessage): unknown {
  if (typeof message.content === "string") return boundText(message.content, STEP_CHARS_MAX);
  const isLong = CODE_POINTS.exceeds(JSON.stringify(message.content), STEP_CHARS_MAX);
  return isLong ? boundText(message.text, STEP_CHARS_MAX) : message.content;
}

function boundCall(call: Record<string, unknown>): Record<string, unknown> {
  const json = JSON.stringify(call.args) ?? "null";
  if (!CODE_POINTS.exceeds(json, STEP_CHARS_MAX)) return call;
  return { ...call, args: CODE_POINTS.first(json, STEP_CHARS_MAX), args_truncated: true };
}
