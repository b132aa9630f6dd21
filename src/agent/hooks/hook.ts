/**
 * The hook pipeline's shapes. A hook is a plain object, a chain is an array (architecture section 4): `before*` run in
 * list order, `wrap*` nest with the first outermost, `after*` run in reverse list order.
 */
import type { AIMessage, BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { ModelRequest } from "../models/model.ts";
import type { ThreadState, ThreadStateUpdate } from "../thread-state/thread-state.ts";

export interface HookContext {
  readonly config: RunnableConfig;
  readonly runId: string | undefined;
  /** "lead", or the subagent's name. */
  readonly agentName: string;
}

export interface ToolCallRequest {
  readonly call: ToolCall & { id: string };
  readonly state: () => ThreadState;
}

/** What a tool call leaves: its one result message and further channel writes, committed together. */
export interface ToolCallResult {
  readonly message: ToolMessage;
  readonly update?: ThreadStateUpdate;
}

export type StateHook = (
  state: ThreadState,
  context: HookContext,
) => ThreadStateUpdate | undefined | Promise<ThreadStateUpdate | undefined>;

export interface AgentHook {
  readonly name: string;
  /** Once per run, across recovery. */
  readonly beforeAgent?: StateHook;
  readonly beforeModel?: StateHook;
  readonly wrapModelCall?: (
    request: ModelRequest,
    next: (request: ModelRequest) => Promise<AIMessage>,
    context: HookContext,
  ) => Promise<AIMessage>;
  readonly wrapToolCall?: (
    request: ToolCallRequest,
    next: (request: ToolCallRequest) => Promise<ToolCallResult>,
    context: HookContext,
  ) => Promise<ToolCallResult>;
  /** May replace the answer by returning a message of the same id, or append. */
  readonly afterModel?: (
    answer: AIMessage,
    state: ThreadState,
    context: HookContext,
  ) => AfterModelOutcome | undefined | Promise<AfterModelOutcome | undefined>;
  readonly afterAgent?: StateHook;
}

export interface AfterModelOutcome {
  /** Replaces the answer. Keeps its id. */
  readonly answer?: AIMessage;
  readonly append?: readonly BaseMessage[];
  readonly update?: ThreadStateUpdate;
}
