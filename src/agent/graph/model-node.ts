/**
 * The `model` node: one model turn with its hooks.
 * Owns the turn count, the request's raw form and the end of a turn. Invariants: the budget is checked before the model
 * is called; hooks, answer and count commit together, so a turn that committed is never taken again (P2).
 */
import { SystemMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import { z } from "zod";
import type { AgentHook, HookContext } from "../hooks/hook.ts";
import { runAfterAgent, runAfterModel, runBefore, wrapModelCall } from "../hooks/pipeline.ts";
import type { ChatModel, ModelRequest, ToolSpec } from "../models/model.ts";
import type { ThreadState } from "../thread-state/thread-state.ts";
import type { GraphTool } from "../tools/tool.ts";
import type { AgentServices } from "./agent-services.ts";
import { pendingCalls, turnHasEnded } from "./pending-calls.ts";
import { runIdOf } from "./run-id.ts";
import { type NodeReturn, StepWrites } from "./step-writes.ts";
import { TurnBudgetError, progressOf } from "./turn-budget.ts";

/** LangGraph's tag that keeps a model call out of the `messages` stream. */
const NOSTREAM_TAG = "nostream";

export interface ModelNodeOptions {
  readonly name: string;
  readonly model: ChatModel;
  readonly systemPrompt: string;
  readonly tools: readonly GraphTool[];
  readonly hooks: readonly AgentHook[];
  readonly maxTurns: number;
  readonly services: AgentServices;
  readonly streamTokens: boolean;
  /** Whether its requests ask for extended thinking. A child's never do (delegation-behaviour 1.1). */
  readonly thinking?: boolean;
}

/** Tools outlive the graphs built for runs, so each schema is translated once. */
const schemas = new WeakMap<z.ZodObject, Record<string, unknown>>();

function toToolSpec({ name, description, parameters }: GraphTool): ToolSpec {
  if ("jsonSchema" in parameters) return { name, description, parameters: parameters.jsonSchema };
  const schema = schemas.get(parameters) ?? (z.toJSONSchema(parameters, { io: "input" }) as Record<string, unknown>);
  schemas.set(parameters, schema);
  return { name, description, parameters: schema };
}

function toRequest(
  { systemPrompt, thinking = false }: ModelNodeOptions,
  state: ThreadState,
  tools: readonly ToolSpec[],
): ModelRequest {
  const system = systemPrompt === "" ? [] : [new SystemMessage(systemPrompt)];
  return { messages: [...system, ...state.messages], tools, ...(thinking ? { thinking } : {}) };
}

function modelConfig(config: RunnableConfig, streamTokens: boolean): RunnableConfig {
  return streamTokens ? config : { ...config, tags: [...(config.tags ?? []), NOSTREAM_TAG] };
}

export function modelNode(options: ModelNodeOptions) {
  const { hooks, services } = options;
  const specs = options.tools.map(toToolSpec);

  async function takeTurn(writes: StepWrites, context: HookContext): Promise<void> {
    const progress = progressOf(writes.state().run_progress, context.runId);
    const turns = progress?.turns ?? 0;
    if (turns >= options.maxTurns) throw new TurnBudgetError(options.name, options.maxTurns);
    if (progress === undefined) await runBefore("beforeAgent", hooks, writes, context);
    await runBefore("beforeModel", hooks, writes, context);
    const config = modelConfig(context.config, options.streamTokens);
    const call = wrapModelCall(
      hooks,
      ({ model = options.model, ...request }) => model.generate(request, config),
      context,
    );
    await services.failpoint?.("model_request", options.name);
    services.assertCurrent?.();
    const answer = await call({ ...toRequest(options, writes.state(), specs), model: options.model });
    await services.failpoint?.("model_answered", options.name);
    await runAfterModel(hooks, answer, writes, context);
    writes.add({ run_progress: { run_id: context.runId ?? null, turns: turns + 1 } });
  }

  return async (state: ThreadState, config: LangGraphRunnableConfig): Promise<NodeReturn> => {
    const context: HookContext = { config, runId: runIdOf(config), agentName: options.name };
    const writes = new StepWrites(state, () => services.newId());
    if (!turnHasEnded(writes.state().messages)) await takeTurn(writes, context);
    if (pendingCalls(writes.state().messages).length === 0) await runAfterAgent(hooks, writes, context);
    return writes.toNodeReturn();
  };
}
