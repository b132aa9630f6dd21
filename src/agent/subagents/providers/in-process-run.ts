/**
 * One child graph in this process: the driver that `spawn` and `fork` share (architecture sections 4 and 8).
 * Owns the child's first state, its config and the reading of its stream. Invariants: fresh ThreadState (R128); no
 * checkpoint coordinates are set, so an interactive child inherits its task's saver and namespace and goes on from its
 * own last step after a crash (R129, R130); the prompt is sent verbatim; what came with the history is never told as a
 * step, counted or taken for the result.
 */
import { AIMessage, HumanMessage, type BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { isGraphBubbleUp } from "@langchain/langgraph";
import { buildAgentGraph, recursionLimitFor, type AgentGraph } from "../../graph/agent-graph.ts";
import type { AgentHook } from "../../hooks/hook.ts";
import { toChildResult, toStoppedResult } from "../child-result.ts";
import { filterTools } from "../child-tools.ts";
import { InFlightCalls } from "../in-flight-calls.ts";
import type { SubagentRequest, SubagentResult, SubagentRun } from "../provider.ts";
import { StepCapture } from "../step-capture.ts";

export const CHILD_DEPTH_KEY = "deputy_depth";
export const CHILD_TASK_KEY = "deputy_task_id";

/**
 * LangGraph's private key for the abort signals of the graph around: while it is set, a nested graph obeys them instead
 * of the signal it is given, and a cancelled or timed-out child would run on. `stopping.test.ts` pins it.
 */
const INHERITED_SIGNALS_KEY = "__pregel_abort_signals";

export interface InProcessChild {
  readonly request: SubagentRequest;
  /** Messages that stand before the prompt; no open calls. */
  readonly history?: readonly BaseMessage[];
  /** The provider's own, innermost. */
  readonly hooks?: readonly AgentHook[];
}

export class InProcessRun implements SubagentRun {
  readonly id: string;
  readonly result: Promise<SubagentResult>;
  readonly #abort = new AbortController();
  readonly #aborted = Promise.withResolvers<SubagentResult>();
  readonly #calls = new InFlightCalls();
  readonly #driven: Promise<unknown>;
  readonly #history: readonly BaseMessage[];
  readonly #messages: BaseMessage[];
  #disposal: Promise<void> | undefined;

  /** Throws when the request's signal has fired: then there is no child. */
  constructor(child: InProcessChild) {
    const { request, history = [] } = child;
    request.signal.throwIfAborted();
    this.id = request.id;
    this.#history = history;
    const prompt = new HumanMessage({ id: request.parent.services.newId(), content: request.prompt });
    this.#messages = [...history, prompt];
    const signal = AbortSignal.any([request.signal, this.#abort.signal]);
    signal.addEventListener("abort", () => this.#aborted.resolve(this.#stopped("aborted")), { once: true });
    const driven = this.#drive(child, signal);
    this.#driven = driven.catch(() => undefined);
    this.result = Promise.race([driven, this.#aborted.promise]);
  }

  /** Everything said so far, the history included. */
  get conversation(): readonly BaseMessage[] {
    return this.#messages;
  }

  cancel(reason = "cancelled"): void {
    this.#abort.abort(new Error(reason));
  }

  dispose(): Promise<void> {
    this.#disposal ??= this.#quiesce();
    return this.#disposal;
  }

  async #quiesce(): Promise<void> {
    this.cancel("disposed");
    await this.#driven;
    await this.#calls.returned();
  }

  async #drive(child: InProcessChild, signal: AbortSignal): Promise<SubagentResult> {
    try {
      await this.#follow(child, signal);
      return withStopReason(toChildResult(this.#own()), this.#own());
    } catch (error) {
      if (error instanceof Error && isGraphBubbleUp(error)) throw error;
      return signal.aborted ? this.#stopped("aborted") : toStoppedResult(this.#own(), error);
    }
  }

  async #follow({ request, hooks = [] }: InProcessChild, signal: AbortSignal): Promise<void> {
    const capture = new StepCapture();
    capture.capture(this.#history);
    const graph = childGraph(request, [this.#calls.hook, ...request.agent.hooks, ...hooks]);
    const stream = await graph.stream(
      { messages: [...this.#messages] },
      { ...childConfig(request, signal), streamMode: ["updates", "values"] },
    );
    let isFirst = true;
    for await (const [mode, chunk] of stream as AsyncIterable<[string, unknown]>) {
      const messages = mode === "values" ? messagesIn(chunk) : updatedMessages(chunk);
      if (mode === "values") this.#messages.splice(0, Infinity, ...messages);
      // The first state holds steps only when the child goes on after a crash: those were told before it.
      const origin = isFirst ? "restored" : "new";
      for (const message of capture.capture(messages)) {
        if (mode !== "values") this.#messages.push(message);
        request.onMessage?.(message, origin);
      }
      isFirst = false;
    }
  }

  #stopped(stopReason: string): SubagentResult {
    return { ...toChildResult(this.#own()), stopReason };
  }

  #own(): readonly BaseMessage[] {
    if (this.#history.length === 0) return this.#messages;
    const before = new Set(this.#history.map(({ id }) => id));
    return this.#messages.filter(({ id }) => id === undefined || !before.has(id));
  }
}

/** What a provider calls the end of an answer that is not one of the model's choice. */
const STOP_REASONS: Readonly<Record<string, string>> = { length: "max-tokens", content_filter: "refusal" };

function withStopReason(result: SubagentResult, messages: readonly BaseMessage[]): SubagentResult {
  if (result.stopReason !== "completed") return result;
  const last = messages.findLast((message) => AIMessage.isInstance(message));
  const finish: unknown = last?.response_metadata["finish_reason"];
  const stopReason = typeof finish === "string" ? STOP_REASONS[finish] : undefined;
  return stopReason === undefined ? result : { ...result, stopReason };
}

function childGraph(request: SubagentRequest, hooks: readonly AgentHook[]): AgentGraph {
  const { agent, parent, toolFilter, persona } = request;
  return buildAgentGraph({
    name: agent.name,
    model: agent.model,
    // Not in the child's state: a stored system message is never taken for the framework's word (P6).
    systemPrompt: persona ?? agent.systemPrompt,
    tools: toolFilter === undefined ? agent.tools : filterTools(agent.tools, toolFilter),
    hooks,
    maxTurns: agent.maxTurns,
    services: parent.services,
    streamTokens: false,
    ...(parent.checkpointer === undefined ? {} : { checkpointer: parent.checkpointer }),
  });
}

/** The parent's config with its identity and handlers; only what must be the child's own is replaced. */
function childConfig({ id, agent, parent }: SubagentRequest, signal: AbortSignal): RunnableConfig {
  const { runId: _runId, runName: _runName, ...inherited } = parent.config;
  return {
    ...inherited,
    tags: [...(inherited.tags ?? []), `subagent:${agent.name}`],
    configurable: {
      ...inherited.configurable,
      [CHILD_DEPTH_KEY]: parent.depth + 1,
      [CHILD_TASK_KEY]: id,
      [INHERITED_SIGNALS_KEY]: undefined,
    },
    recursionLimit: recursionLimitFor(agent.maxTurns),
    signal,
  };
}

function messagesIn(values: unknown): readonly BaseMessage[] {
  return (values as { messages?: BaseMessage[] }).messages ?? [];
}

/** An `updates` chunk: node name to its update, or to several when the node returned Commands. */
function updatedMessages(chunk: unknown): readonly BaseMessage[] {
  const updates = Object.values(chunk as Record<string, unknown>).flat();
  return updates.flatMap((update) => (update === null || typeof update !== "object" ? [] : messagesIn(update)));
}
