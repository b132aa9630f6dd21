/**
 * Runs a chain of hooks around a model turn or a tool call.
 * Owns the order (architecture section 4): `before*` in list order; `wrap*` nest, the first outermost; `after*` in
 * reverse list order. Each hook sees what the ones before it wrote.
 */
import type { AIMessage, BaseMessage } from "@langchain/core/messages";
import { copyMessage } from "../thread-state/message-forms.ts";
import { applyStateUpdate } from "../thread-state/channels.ts";
import type { ThreadState, ThreadStateUpdate } from "../thread-state/thread-state.ts";
import type { ModelRequest } from "../models/model.ts";
import type { AgentHook, HookContext, ToolCallRequest, ToolCallResult } from "./hook.ts";

/** Where hooks read state and leave writes; `StepWrites` is one. */
export interface HookWrites {
  state(): ThreadState;
  prepare(messages: readonly BaseMessage[]): BaseMessage[];
  add(update: ThreadStateUpdate | undefined): void;
}

export type ModelCall = (request: ModelRequest) => Promise<AIMessage>;
export type ToolCallRun = (request: ToolCallRequest) => Promise<ToolCallResult>;

export async function runBefore(
  moment: "beforeAgent" | "beforeModel",
  hooks: readonly AgentHook[],
  writes: HookWrites,
  context: HookContext,
): Promise<void> {
  for (const hook of hooks) writes.add(await hook[moment]?.(writes.state(), context));
}

export async function runAfterAgent(
  hooks: readonly AgentHook[],
  writes: HookWrites,
  context: HookContext,
): Promise<void> {
  for (const hook of hooks.toReversed()) writes.add(await hook.afterAgent?.(writes.state(), context));
}

export function wrapModelCall(hooks: readonly AgentHook[], innermost: ModelCall, context: HookContext): ModelCall {
  return hooks.reduceRight<ModelCall>((next, hook) => {
    const wrap = hook.wrapModelCall;
    return wrap === undefined ? next : async (request) => wrap.call(hook, request, next, context);
  }, innermost);
}

export function wrapToolCall(hooks: readonly AgentHook[], innermost: ToolCallRun, context: HookContext): ToolCallRun {
  return hooks.reduceRight<ToolCallRun>((next, hook) => {
    const wrap = hook.wrapToolCall;
    return wrap === undefined ? next : async (request) => wrap.call(hook, request, next, context);
  }, innermost);
}

function keepingId(answer: AIMessage, id: string | undefined): AIMessage {
  return answer.id === id ? answer : (copyMessage(answer, { id }) as AIMessage);
}

/**
 * Hooks see the answer in `state`, but the channel gets it once, as the last hook left it: an answer written and then
 * replaced would reach the stream twice. `append` follows it in the order hooks gave.
 */
export async function runAfterModel(
  hooks: readonly AgentHook[],
  received: AIMessage,
  writes: HookWrites,
  context: HookContext,
): Promise<void> {
  let answer = writes.prepare([received])[0] as AIMessage;
  const appended: BaseMessage[] = [];
  for (const hook of hooks.toReversed()) {
    if (hook.afterModel === undefined) continue;
    const state = applyStateUpdate(writes.state(), { messages: [answer, ...appended] });
    const outcome = await hook.afterModel(answer, state, context);
    if (outcome === undefined) continue;
    if (outcome.answer !== undefined) answer = keepingId(outcome.answer, answer.id);
    const { messages, ...channels } = outcome.update ?? {};
    appended.push(...(outcome.append ?? []), ...(messages ?? []));
    writes.add(channels);
  }
  writes.add({ messages: [answer, ...appended] });
}
