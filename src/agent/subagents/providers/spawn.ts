/**
 * The `spawn` provider: a fresh child graph in this process (architecture sections 4 and 8).
 * Owns the child's first state, its config and the reading of its stream. Invariants: fresh ThreadState (R128); no
 * checkpoint coordinates are set, so an interactive child inherits its task's saver and namespace and goes on from its
 * own last step after a crash (R129, R130); the prompt is sent verbatim and nothing else of the parent's.
 */
import { HumanMessage, type BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { isGraphBubbleUp } from "@langchain/langgraph";
import { buildAgentGraph, recursionLimitFor, type AgentGraph } from "../../graph/agent-graph.ts";
import { filterTools } from "../child-tools.ts";
import { toChildResult, toStoppedResult } from "../child-result.ts";
import type { SubagentProvider, SubagentRequest, SubagentResult, SubagentRun } from "../provider.ts";
import { StepCapture } from "../step-capture.ts";

export const SPAWN_PROVIDER_NAME = "spawn";
export const CHILD_DEPTH_KEY = "deputy_depth";
export const CHILD_TASK_KEY = "deputy_task_id";

/**
 * LangGraph's private key for the abort signals of the graph around: while it is set, a nested graph obeys them instead
 * of the signal it is given, and a cancelled or timed-out child would run on. `stopping.test.ts` pins it.
 */
const INHERITED_SIGNALS_KEY = "__pregel_abort_signals";

export function spawnProvider(): SubagentProvider {
  return {
    name: SPAWN_PROVIDER_NAME,
    capabilities: { outputSchema: false, depthLimit: true, toolFilter: true, persona: true },
    inheritsParentContext: false,
    start: async (request) => new SpawnedRun(request),
  };
}

class SpawnedRun implements SubagentRun {
  readonly id: string;
  readonly result: Promise<SubagentResult>;
  readonly #abort = new AbortController();
  readonly #aborted = Promise.withResolvers<SubagentResult>();
  readonly #driven: Promise<unknown>;
  readonly #messages: BaseMessage[] = [];

  constructor(request: SubagentRequest) {
    this.id = request.id;
    const signal = AbortSignal.any([request.signal, this.#abort.signal]);
    signal.addEventListener("abort", () => this.#aborted.resolve(this.#stopped("aborted")), { once: true });
    const driven = this.#drive(request, signal);
    this.#driven = driven.catch(() => undefined);
    this.result = Promise.race([driven, this.#aborted.promise]);
  }

  cancel(reason = "cancelled"): void {
    this.#abort.abort(new Error(reason));
  }

  async dispose(): Promise<void> {
    this.cancel("disposed");
    await this.#driven;
  }

  async #drive(request: SubagentRequest, signal: AbortSignal): Promise<SubagentResult> {
    try {
      await this.#follow(request, signal);
      return toChildResult(this.#messages);
    } catch (error) {
      if (error instanceof Error && isGraphBubbleUp(error)) throw error;
      return signal.aborted ? this.#stopped("aborted") : toStoppedResult(this.#messages, error);
    }
  }

  async #follow(request: SubagentRequest, signal: AbortSignal): Promise<void> {
    const capture = new StepCapture();
    const stream = await childGraph(request).stream(childInput(request), {
      ...childConfig(request, signal),
      streamMode: ["updates", "values"],
    });
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
    return { ...toChildResult(this.#messages), stopReason };
  }
}

function childGraph({ agent, parent, toolFilter, persona }: SubagentRequest): AgentGraph {
  return buildAgentGraph({
    name: agent.name,
    model: agent.model,
    // Not in the child's state: a stored system message is never taken for the framework's word (P6).
    systemPrompt: persona ?? agent.systemPrompt,
    tools: toolFilter === undefined ? agent.tools : filterTools(agent.tools, toolFilter),
    hooks: agent.hooks,
    maxTurns: agent.maxTurns,
    services: parent.services,
    streamTokens: false,
    ...(parent.checkpointer === undefined ? {} : { checkpointer: parent.checkpointer }),
  });
}

function childInput({ prompt, parent: { services } }: SubagentRequest): { messages: BaseMessage[] } {
  return { messages: [new HumanMessage({ id: services.newId(), content: prompt })] };
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
