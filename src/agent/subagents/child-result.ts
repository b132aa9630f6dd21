/**
 * Reads a child's outcome from its messages: which text counts, and why it stopped (delegation-behaviour 1.5).
 * The text is the last non-empty one an assistant message holds; the task prompt and tool results never count.
 */
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { isBlank } from "../../domain/delegation/delegation-outcome.ts";
import { ERROR_FALLBACK_KEY } from "../../domain/model-errors/fallback-answer.ts";
import { TurnBudgetError } from "../graph/turn-budget.ts";
import { ModelFailure } from "../models/model.ts";
import { boundDiagnostic } from "./diagnostic.ts";
import type { SubagentResult, TextBlock } from "./provider.ts";

/** The child ended by itself. Only a mark on the last answer counts: an earlier one is stale (R87, R88). */
export function toChildResult(messages: readonly BaseMessage[]): SubagentResult {
  const last = messages.findLast((message): message is AIMessage => AIMessage.isInstance(message));
  if (last?.additional_kwargs[ERROR_FALLBACK_KEY] !== true) {
    return { output: lastText(messages), stopReason: "completed" };
  }
  const detail: unknown = last.additional_kwargs["error_detail"];
  const diagnostic = [last.text, detail].find((text): text is string => typeof text === "string" && !isBlank(text));
  const earlier = messages.filter((message) => message !== last);
  return {
    output: lastText(earlier),
    stopReason: "error",
    diagnostic: boundDiagnostic(diagnostic ?? "LLM request failed"),
  };
}

/** The child was ended by a throw. An empty answer is no error: what it said before decides (R98). */
export function toStoppedResult(messages: readonly BaseMessage[], error: unknown): SubagentResult {
  const output = lastText(messages);
  if (error instanceof TurnBudgetError) return toCappedResult(messages, output);
  if (error instanceof ModelFailure && error.reason === "empty") return { output, stopReason: "completed" };
  return {
    output,
    stopReason: "error",
    diagnostic: boundDiagnostic(error instanceof Error ? error.message : String(error)),
  };
}

/** A child whose last model call failed has failed, whatever ended it. */
function toCappedResult(messages: readonly BaseMessage[], output: readonly TextBlock[]): SubagentResult {
  const result = toChildResult(messages);
  return result.stopReason === "error" ? result : { output, stopReason: "max-turns" };
}

function lastText(messages: readonly BaseMessage[]): readonly TextBlock[] {
  const speaking = messages.findLast((message) => AIMessage.isInstance(message) && !isBlank(message.text));
  return speaking === undefined ? [] : [{ type: "text", text: speaking.text }];
}
