/**
 * The `tools` node: one task per call, sent only the call.
 * Invariants: a task never throws but for LangGraph's bubble-ups and aborts, since a throw ends the superstep and loses
 * the siblings that finish later; exactly one result for the call; a failed call leaves nothing staged.
 */
import { ToolMessage } from "@langchain/core/messages";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import { invariant } from "../../domain/shared/assert.ts";
import type { AgentHook, HookContext, ToolCallRequest, ToolCallResult } from "../hooks/hook.ts";
import { wrapToolCall } from "../hooks/pipeline.ts";
import { mustEscape, toolErrorResult } from "../hooks/tool-errors.ts";
import { HumanInputError, isUnanswerable } from "./human-input.ts";
import { type ToolExecution, executeToolCall } from "./execute-tool-call.ts";
import type { IdentifiedToolCall } from "./pending-calls.ts";
import { readThreadState } from "./read-thread-state.ts";
import { runIdOf } from "./run-id.ts";
import { type NodeReturn, StepWrites } from "./step-writes.ts";

export interface ToolsNodeOptions extends ToolExecution {
  readonly name: string;
  readonly hooks: readonly AgentHook[];
}

/** What `Send` carries. */
export interface ToolTask {
  readonly call: IdentifiedToolCall;
}

function checkAnswers(result: ToolCallResult, call: IdentifiedToolCall): void {
  invariant(ToolMessage.isInstance(result.message), `a hook gave no ToolMessage for call '${call.id}'`);
  invariant(
    result.message.tool_call_id === call.id,
    `a hook answered call '${result.message.tool_call_id}' instead of '${call.id}'`,
  );
}

function toNodeReturn(result: ToolCallResult, request: ToolCallRequest, newId: () => string): NodeReturn {
  checkAnswers(result, request.call);
  const writes = new StepWrites(request.state(), newId);
  const { messages, ...channels } = result.update ?? {};
  writes.add({ ...channels, messages: [result.message, ...(messages ?? [])] });
  return writes.toNodeReturn();
}

export function toolsNode(options: ToolsNodeOptions) {
  const { services, hooks } = options;
  const newId = () => services.newId();
  return async (task: ToolTask, config: LangGraphRunnableConfig): Promise<NodeReturn> => {
    const context: HookContext = { config, runId: runIdOf(config), agentName: options.name };
    const request: ToolCallRequest = { call: task.call, state: () => readThreadState(config) };
    const run = wrapToolCall(hooks, (inner) => executeToolCall(options, inner, context), context);
    try {
      return toNodeReturn(await run(request), request, newId);
    } catch (error) {
      services.workspace.discard(task.call.id);
      if (isUnanswerable(error)) throw new HumanInputError();
      if (mustEscape(error, config)) throw error;
      return toNodeReturn(toolErrorResult(task.call, error, newId), request, newId);
    }
  };
}
