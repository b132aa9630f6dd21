/**
 * The strict reading of a model's calls, for every provider alike: arguments are one JSON object in the raw text or the
 * call is invalid. Nothing is repaired: an adapter's lenient parser turns arguments cut by the output limit into
 * complete-looking ones, and a tool would then run with half a command.
 * Owns the reading and the bounds; the tools node answers an invalid call with an error result.
 */
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import type { ToolCall } from "@langchain/core/messages/tool";
import { JSON_DEPTH_MAX, nestsDeeper } from "../../domain/shared/json-depth.ts";
import { MODEL_NAME_PATTERN, parseObject } from "./request-rules.ts";

/** What stands in for a name no provider would take back. */
export const UNKNOWN_TOOL_NAME = "unknown_tool";

/** Enough for the model to see what it wrote; the whole could be megabytes and is stored with the message. */
export const INVALID_RAW_CHARS_MAX = 2_000;

export interface RawCall {
  readonly id: string;
  readonly name: string;
  readonly rawArguments: string;
}

export interface InvalidCall {
  readonly raw: string;
  readonly error: string;
}

export interface CheckedCalls {
  readonly toolCalls: (ToolCall & { id: string })[];
  /** By our call id; kept in `additional_kwargs.deputy_invalid_tool_calls`. */
  readonly invalid: Record<string, InvalidCall>;
}

export function checkCalls(calls: readonly RawCall[], finishReason: string): CheckedCalls {
  const invalid: Record<string, InvalidCall> = {};
  const toolCalls = calls.map((call) => {
    const legal = MODEL_NAME_PATTERN.test(call.name);
    const args = parseObject(call.rawArguments);
    const error = legal ? argumentsError(call.rawArguments, args, finishReason) : nameError(call.name);
    if (error !== undefined)
      invalid[call.id] = { raw: UTF16_UNITS.first(call.rawArguments, INVALID_RAW_CHARS_MAX), error };
    const name = legal ? call.name : UNKNOWN_TOOL_NAME;
    return { type: "tool_call" as const, id: call.id, name, args: error === undefined ? (args ?? {}) : {} };
  });
  return { toolCalls, invalid };
}

function nameError(name: string): string {
  return `the tool name ${JSON.stringify(UTF16_UNITS.first(name, 100))} is illegal; names match ${MODEL_NAME_PATTERN.source}`;
}

function argumentsError(
  raw: string,
  args: Record<string, unknown> | undefined,
  finishReason: string,
): string | undefined {
  if (args && nestsDeeper(args, JSON_DEPTH_MAX)) return `the arguments nest deeper than ${JSON_DEPTH_MAX} levels`;
  if (args) return undefined;
  if (finishReason === "length") return "the arguments were cut by the output limit; send a shorter call";
  if (raw.trim() === "") return "the arguments are empty; send one JSON object, {} when there are none";
  return "the arguments are not one JSON object";
}
