/**
 * Turns what a tool call threw into an error result that the model can act on.
 * Owns the text of such results. Does not own LangGraph's bubble-ups and aborts: those pass, since an interrupt or a
 * cancelled run is no failure of the tool.
 */
import { ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { isGraphBubbleUp } from "@langchain/langgraph";
import { RetiredInstanceError } from "../../domain/shared/retired-instance.ts";
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import { isUnanswerable } from "../graph/human-input.ts";
import type { IdentifiedToolCall } from "../graph/pending-calls.ts";
import type { AgentHook, ToolCallResult } from "./hook.ts";

/** Characters of a thrown message shown to the model: enough for a cause, too little to flood the context. */
export const TOOL_ERROR_DETAIL_CHARS_MAX = 500;

/** Thrown inside a call whose text is already what the model should read. */
export class ToolCallRefusal extends Error {
  override readonly name = "ToolCallRefusal";
}

export interface ToolErrorServices {
  newId(): string;
  /** Drops what the failed call staged. */
  discard(toolCallId: string): void;
}

const RECOVERY_HINT = "Correct the arguments, use another tool, or go on with what you have.";

function errorClass(error: unknown): string {
  if (!(error instanceof Error)) return "Error";
  return error.name !== "" && error.name !== "Error" ? error.name : error.constructor.name || "Error";
}

function errorDetail(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return UTF16_UNITS.first(text, TOOL_ERROR_DETAIL_CHARS_MAX) || "no detail";
}

function toolErrorText(toolName: string, error: unknown): string {
  if (error instanceof ToolCallRefusal) return `Error: ${error.message}\n${RECOVERY_HINT}`;
  return `Error: Tool '${toolName}' failed with ${errorClass(error)}: ${errorDetail(error)}\n${RECOVERY_HINT}`;
}

/** What must leave the task as a throw: LangGraph's own signals, a question nobody can answer, all after an abort. */
export function mustEscape(error: unknown, config: RunnableConfig): boolean {
  if (config.signal?.aborted === true || isUnanswerable(error)) return true;
  // Nothing may be stored for an instance that was replaced: its calls are another one's.
  if (error instanceof RetiredInstanceError) return true;
  return error instanceof Error && isGraphBubbleUp(error);
}

export function toolErrorResult(call: IdentifiedToolCall, error: unknown, newId: () => string): ToolCallResult {
  const message = new ToolMessage({
    id: newId(),
    name: call.name,
    tool_call_id: call.id,
    status: "error",
    content: toolErrorText(call.name, error),
  });
  return { message };
}

export function toolErrorsHook(services: ToolErrorServices): AgentHook {
  return {
    name: "tool_errors",
    async wrapToolCall(request, next, context) {
      try {
        return await next(request);
      } catch (error) {
        if (mustEscape(error, context.config)) throw error;
        services.discard(request.call.id);
        return toolErrorResult(request.call, error, () => services.newId());
      }
    },
  };
}
