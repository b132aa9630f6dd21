/**
 * How a child reports a structured answer: a tool of its own whose parameters are the requested schema (subagent-seam 2.4).
 * Owns the tool, its note in System, the hook around it and the reading of the answer. Two phases: the tool stages the
 * value, and it counts only when the call's final result, after every other hook, is a success. The hook, outermost, then
 * writes it into that result, so that the answer commits with it and is read from the child's state, also after a crash.
 * Invariants: a refused or failed call leaves nothing behind; the first valid call of an answer is its last one that runs.
 */
import { AIMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { ENDS_TURN_KEY } from "../graph/pending-calls.ts";
import type { AgentHook, ToolCallRequest, ToolCallResult } from "../hooks/hook.ts";
import { ToolCallRefusal } from "../hooks/tool-errors.ts";
import { INVALID_CALLS_KEY } from "../models/model-answer.ts";
import { copyMessage } from "../thread-state/message-forms.ts";
import type { GraphTool, JsonSchemaParameters } from "../tools/tool.ts";
import { compileOutputSchema } from "./output-schema.ts";

export const STRUCTURED_OUTPUT_TOOL_NAME = "structured_output";

/** On the result that committed: `{ value }`. */
const STRUCTURED_OUTPUT_KEY = "deputy_structured_output";

export const STRUCTURED_OUTPUT_NOTE = `<structured_output>
Report your final answer by calling the tool \`${STRUCTURED_OUTPUT_TOOL_NAME}\`; its parameters are the form of the answer. An
answer in prose does not count. If the call is refused, correct it and call again. Once it is accepted you are done: calls
after it in the same message do not run.
</structured_output>`;

export interface StructuredOutput {
  readonly tool: GraphTool;
  /** Outermost but for what only watches. */
  readonly hook: AgentHook;
}

/** For one child: what is staged belongs to it. */
export function structuredOutput(schema: unknown): StructuredOutput {
  const parameters = compileOutputSchema(schema);
  const staged = new Map<string, unknown>();
  return { tool: reportingTool(parameters, staged), hook: committingHook(parameters, staged) };
}

/** The answer that stands in the child's own messages, if one does. */
export function findStructured(messages: readonly BaseMessage[]): { readonly value: unknown } | undefined {
  const found = messages.findLast((message) => ToolMessage.isInstance(message) && isReport(message));
  return found?.additional_kwargs[STRUCTURED_OUTPUT_KEY] as { value: unknown } | undefined;
}

function isReport({ name, status, additional_kwargs }: ToolMessage): boolean {
  return (
    name === STRUCTURED_OUTPUT_TOOL_NAME &&
    status !== "error" &&
    Object.hasOwn(additional_kwargs, STRUCTURED_OUTPUT_KEY)
  );
}

function reportingTool(parameters: JsonSchemaParameters, staged: Map<string, unknown>): GraphTool {
  return {
    name: STRUCTURED_OUTPUT_TOOL_NAME,
    description: "Reports your final answer and ends your work.",
    parameters,
    recovery: "safe",
    execute: async (args, { toolCallId }) => {
      staged.set(toolCallId, args);
      return { status: "success", content: "The answer was recorded." };
    },
  };
}

function committingHook(parameters: JsonSchemaParameters, staged: Map<string, unknown>): AgentHook {
  return {
    name: STRUCTURED_OUTPUT_TOOL_NAME,
    wrapToolCall: async (request, next) => {
      if (followsReport(request, parameters)) throw new ToolCallRefusal(FOLLOWS_REPORT);
      if (request.call.name !== STRUCTURED_OUTPUT_TOOL_NAME) return next(request);
      try {
        const result = await next(request);
        const isAccepted = staged.has(request.call.id) && result.message.status !== "error";
        return isAccepted ? withValue(result, staged.get(request.call.id)) : result;
      } finally {
        staged.delete(request.call.id);
      }
    },
  };
}

const FOLLOWS_REPORT = `not run: \`${STRUCTURED_OUTPUT_TOOL_NAME}\` was called before it in the same message. If that call was refused, call this again`;

/**
 * Calls of one answer run side by side, and after a crash only those without a result run again: whether a report went
 * before is decided from the answer alone, so that it is the same every time.
 */
function followsReport({ call, state }: ToolCallRequest, { violations }: JsonSchemaParameters): boolean {
  const answer = state().messages.findLast((message) => AIMessage.isInstance(message));
  const calls = answer?.tool_calls ?? [];
  const unparsed = Object.keys(answer?.additional_kwargs[INVALID_CALLS_KEY] ?? {});
  const index = calls.findIndex(({ id }) => id === call.id);
  return calls
    .slice(0, Math.max(index, 0))
    .filter(({ name, id }) => name === STRUCTURED_OUTPUT_TOOL_NAME && !unparsed.includes(id ?? ""))
    .some(({ args }) => violations(args).length === 0);
}

function withValue(result: ToolCallResult, value: unknown): ToolCallResult {
  const marks = { [STRUCTURED_OUTPUT_KEY]: { value }, [ENDS_TURN_KEY]: true };
  const additional_kwargs = { ...result.message.additional_kwargs, ...marks };
  return { ...result, message: copyMessage(result.message, { additional_kwargs }) as ToolMessage };
}
