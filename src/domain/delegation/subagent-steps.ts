/**
 * The persisted side of a delegation: contents of the `subagent.start`, `subagent.step` and `subagent.end` run events
 * (delegation-behaviour 1.7). Owns their fields and caps; who numbers and stores them is the thread object's business.
 * A malformed chunk is refused with its reason, never stored half (R117).
 */
import { err, ok, type Result } from "../shared/result.ts";
import { CODE_POINTS } from "../shared/cut-text.ts";
import { parseDelegationKwargs } from "./delegation-result.ts";
import type { ProducedSubagentStatus } from "./status-contract.ts";

/** Text, arguments of one call, result and error of the log; the same cap holds for live frames. */
export const STEP_CHARS_MAX = 8_192;

/** A message of a child, reduced to what a step shows. Made from a LangChain message by `agent/subagents`. */
export interface StepMessage {
  readonly kind: "ai" | "tool";
  readonly text: string;
  readonly toolName?: string | undefined;
  readonly toolCalls?: readonly { readonly name: string; readonly args: unknown }[] | undefined;
}

export interface StepToolCall {
  readonly name: string;
  readonly args: unknown;
  readonly args_truncated?: true;
}

export interface SubagentStep {
  readonly task_id: string;
  readonly message_index: number;
  readonly kind: "ai" | "tool";
  readonly text: string;
  readonly truncated: boolean;
  readonly tool_name?: string;
  readonly tool_calls?: readonly StepToolCall[];
}

export interface MalformedStep {
  readonly reason: "malformed_step";
  readonly field: "task_id" | "message_index" | "message";
}

/** Takes unknown values: a step may come from a remote child. */
export function toSubagentStep(
  taskId: unknown,
  messageIndex: unknown,
  message: unknown,
): Result<SubagentStep, MalformedStep> {
  if (typeof taskId !== "string" || taskId === "") return malformed("task_id");
  if (!Number.isSafeInteger(messageIndex) || (messageIndex as number) < 0) return malformed("message_index");
  if (!isStepMessage(message)) return malformed("message");
  const { value, truncated } = cap(message.text);
  return ok({
    task_id: taskId,
    message_index: messageIndex as number,
    kind: message.kind,
    text: value,
    truncated,
    ...(message.kind === "tool" ? { tool_name: message.toolName ?? "" } : {}),
    ...(message.kind === "ai" ? { tool_calls: (message.toolCalls ?? []).map(capCall) } : {}),
  });
}

export interface SubagentStart {
  readonly task_id: string;
  readonly description: string | null;
}

export function toSubagentStart(taskId: string, description: string | null): SubagentStart {
  return { task_id: taskId, description };
}

export interface SubagentEnd {
  readonly task_id: string;
  readonly status: ProducedSubagentStatus;
  readonly model_name?: string;
  readonly usage?: unknown;
  readonly result?: string;
  readonly result_truncated?: true;
  readonly error?: string;
  readonly error_truncated?: true;
}

/**
 * From a `task` result message. `undefined` when its kwargs name no terminal status. `content` is the model-visible
 * text; the result is read from it because the metadata holds a brief only.
 */
export function toSubagentEnd(
  taskId: string,
  kwargs: Readonly<Record<string, unknown>>,
  content: string,
): SubagentEnd | undefined {
  const metadata = parseDelegationKwargs(kwargs);
  if (metadata === undefined) return undefined;
  const status = metadata.status === "polling_timed_out" ? "timed_out" : metadata.status;
  const result = status === "completed" ? cap(stripHeadline(content)) : undefined;
  const error = metadata.error === undefined ? undefined : cap(metadata.error);
  return {
    task_id: taskId,
    status,
    ...(metadata.modelName === undefined ? {} : { model_name: metadata.modelName }),
    ...(metadata.usage === undefined ? {} : { usage: metadata.usage }),
    ...(result === undefined ? {} : { result: result.value }),
    ...(result?.truncated === true ? { result_truncated: true as const } : {}),
    ...(error === undefined ? {} : { error: error.value }),
    ...(error?.truncated === true ? { error_truncated: true as const } : {}),
  };
}

function stripHeadline(content: string): string {
  return content.replace(/^Task Succeeded(?: \(capped: [^)]*\))?\. Result: /, "");
}

function capCall(call: { readonly name: string; readonly args: unknown }): StepToolCall {
  const json = JSON.stringify(call.args) ?? "null";
  if (!CODE_POINTS.exceeds(json, STEP_CHARS_MAX)) return { name: call.name, args: call.args };
  return { name: call.name, args: CODE_POINTS.first(json, STEP_CHARS_MAX), args_truncated: true };
}

function cap(text: string): { value: string; truncated: boolean } {
  const truncated = CODE_POINTS.exceeds(text, STEP_CHARS_MAX);
  return { value: truncated ? CODE_POINTS.first(text, STEP_CHARS_MAX) : text, truncated };
}

function isStepMessage(value: unknown): value is StepMessage {
  if (value === null || typeof value !== "object") return false;
  const { kind, text, toolCalls } = value as Record<string, unknown>;
  if ((kind !== "ai" && kind !== "tool") || typeof text !== "string") return false;
  return toolCalls === undefined || (Array.isArray(toolCalls) && toolCalls.every(isStepCall));
}

function isStepCall(value: unknown): boolean {
  return value !== null && typeof value === "object" && typeof (value as { name?: unknown }).name === "string";
}

function malformed(field: MalformedStep["field"]): { readonly ok: false; readonly error: MalformedStep } {
  return err({ reason: "malformed_step", field });
}
