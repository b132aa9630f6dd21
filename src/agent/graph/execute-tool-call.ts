/**
 * Runs one tool call: finds the tool, checks the arguments, executes it over its staged workspace.
 * Owns what precedes and follows `Tool.execute`. Throws what goes wrong; the tool-errors hook and the tools node make
 * results of it. Invariant: a call that threw or was cut off leaves nothing staged.
 */
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import { AIMessage, ToolMessage, isAIMessage } from "@langchain/core/messages";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import type { z } from "zod";
import type { HookContext, ToolCallRequest, ToolCallResult } from "../hooks/hook.ts";
import { ToolCallRefusal } from "../hooks/tool-errors.ts";
import { TOOL_WRITABLE_CHANNELS } from "../thread-state/channels.ts";
import type { ThreadState, ThreadStateUpdate } from "../thread-state/thread-state.ts";
import { INVALID_CALLS_KEY } from "../models/model-answer.ts";
import type { GraphTool, ToolOutcome, ToolRuntime } from "../tools/tool.ts";
import type { AgentServices } from "./agent-services.ts";
import type { IdentifiedToolCall } from "./pending-calls.ts";
import { startToolCall } from "./start-tool-call.ts";

/** Issues named in one refusal: the first few say what to correct. */
const SCHEMA_ISSUES_SHOWN_MAX = 5;
/** Characters of unparsable arguments shown back to the model. */
const RAW_ARGUMENTS_CHARS_MAX = 200;

export interface ToolExecution {
  readonly tools: ReadonlyMap<string, GraphTool>;
  readonly services: AgentServices;
}

function findTool(tools: ReadonlyMap<string, GraphTool>, name: string): GraphTool {
  const tool = tools.get(name);
  if (tool !== undefined) return tool;
  const known = [...tools.keys()].join(", ") || "none";
  throw new ToolCallRefusal(`there is no tool '${name}'; available: ${known}`);
}

interface InvalidToolCall {
  readonly raw: string;
  readonly error: string;
}

/** The model port marks a call whose arguments did not parse on the answer that holds the call. */
function invalidMark(state: ThreadState, callId: string): InvalidToolCall | undefined {
  const answer = state.messages.findLast(
    (message): message is AIMessage =>
      isAIMessage(message) && (message.tool_calls ?? []).some((call) => call.id === callId),
  );
  const marks = answer?.additional_kwargs[INVALID_CALLS_KEY] as Record<string, InvalidToolCall> | undefined;
  return marks?.[callId];
}

function refuseInvalid(call: IdentifiedToolCall, mark: InvalidToolCall | undefined): void {
  if (mark === undefined) return;
  const raw = UTF16_UNITS.first(mark.raw, RAW_ARGUMENTS_CHARS_MAX);
  throw new ToolCallRefusal(
    `the arguments of tool '${call.name}' are not one complete JSON object (${mark.error}): ${raw}`,
  );
}

function issueText(issue: z.core.$ZodIssue): string {
  return `${issue.path.map(String).join(".") || "(arguments)"}: ${issue.message}`;
}

function parseArguments(tool: GraphTool, call: IdentifiedToolCall): Record<string, unknown> {
  const { parameters } = tool;
  if ("jsonSchema" in parameters) return checkArguments(tool.name, parameters.violations(call.args), call);
  const parsed = parameters.safeParse(call.args);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.slice(0, SCHEMA_ISSUES_SHOWN_MAX).map(issueText).join("; ");
  const allowed = Object.keys(parameters.shape).join(", ") || "none";
  throw new ToolCallRefusal(`tool '${tool.name}' got invalid arguments: ${issues}. Its arguments: ${allowed}`);
}

function checkArguments(
  name: string,
  violations: readonly string[],
  { args }: IdentifiedToolCall,
): Record<string, unknown> {
  if (violations.length === 0) return args as Record<string, unknown>;
  const issues = violations.slice(0, SCHEMA_ISSUES_SHOWN_MAX).join("; ");
  throw new ToolCallRefusal(`tool '${name}' got invalid arguments: ${issues}`);
}

/** Parallel results meet in one step; a channel that does not merge would fail it for all of them. */
function checkUpdate(tool: GraphTool, update: ToolOutcome["update"]): ThreadStateUpdate {
  const writable: readonly string[] = TOOL_WRITABLE_CHANNELS;
  const refused = Object.keys(update ?? {}).find((channel) => !writable.includes(channel));
  if (refused === undefined) return { ...update } as ThreadStateUpdate;
  throw new ToolCallRefusal(`tool '${tool.name}' may not write channel '${refused}'; allowed: ${writable.join(", ")}`);
}

function toResult(tool: GraphTool, call: IdentifiedToolCall, outcome: ToolOutcome, id: string): ToolCallResult {
  const message = new ToolMessage({
    id,
    name: call.name,
    tool_call_id: call.id,
    status: outcome.status,
    content: outcome.content,
    additional_kwargs: { ...outcome.additionalKwargs },
  });
  return { message, update: checkUpdate(tool, outcome.update) };
}

/** Where a test's failpoint finds this call. */
function placeOf({ name, args }: IdentifiedToolCall, { agentName }: HookContext): string {
  return `${agentName} ${name} ${JSON.stringify(args)}`;
}

export async function executeToolCall(
  execution: ToolExecution,
  request: ToolCallRequest,
  context: HookContext,
): Promise<ToolCallResult> {
  const { services, tools } = execution;
  const { call, state } = request;
  refuseInvalid(call, invalidMark(state(), call.id));
  const tool = findTool(tools, call.name);
  const args = parseArguments(tool, call);
  const config: LangGraphRunnableConfig = context.config;
  await services.failpoint?.("tool_not_started", placeOf(call, context));
  const start = await startToolCall(tool, { id: call.id, args }, { context, services });
  if (start.kind === "answered") return toResult(tool, call, start.outcome, services.newId());
  await services.failpoint?.("tool_started", placeOf(call, context));
  services.assertCurrent?.();
  // Its abort has been told already: nobody would discard what this call stages.
  config.signal?.throwIfAborted();
  const runtime: ToolRuntime = {
    toolCallId: call.id,
    runId: context.runId,
    attempt: start.attempt,
    ...(start.idempotencyKey === undefined ? {} : { idempotencyKey: start.idempotencyKey }),
    signal: config.signal ?? new AbortController().signal,
    workspace: services.workspace.open(call.id),
    state,
    emit: (event) => config.writer?.(event),
    config,
  };
  // At once, not when the tool notices: until then its staged files would hold their paths against other calls.
  const discard = () => services.workspace.discard(call.id);
  runtime.signal.addEventListener("abort", discard, { once: true });
  try {
    const outcome = await tool.execute(args, runtime);
    await services.failpoint?.("tool_finished", placeOf(call, context));
    return toResult(tool, call, outcome, services.newId());
  } catch (error) {
    discard();
    throw error;
  } finally {
    runtime.signal.removeEventListener("abort", discard);
  }
}
