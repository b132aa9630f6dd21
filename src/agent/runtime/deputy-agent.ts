/**
 * What `createDeputyAgent` gives: the graph, what it is made of, and two ways to run it. Owns the run id: a run without
 * one would count every delegation of its thread toward its own cap.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { AgentGraph } from "../graph/agent-graph.ts";
import { runIdOf } from "../graph/run-id.ts";
import { recursionLimitFor } from "../graph/turn-budget.ts";
import type { AgentHook } from "../hooks/hook.ts";
import { sha256 } from "../sha256.ts";
import type { ThreadState } from "../thread-state/thread-state.ts";
import type { Tool } from "../tools/tool.ts";

export interface DeputyAgentParts {
  readonly graph: AgentGraph;
  readonly model: string;
  readonly systemPrompt: string;
  readonly tools: readonly Tool[];
  readonly hooks: readonly AgentHook[];
  readonly maxTurns: number;
  readonly newId: () => string;
}

export type AgentInput = Parameters<AgentGraph["stream"]>[0] | { readonly messages: unknown };
type StreamOptions = NonNullable<Parameters<AgentGraph["stream"]>[1]>;

/** LangGraph's stream, with the id its run has. */
export interface AgentRun extends AsyncIterable<unknown> {
  readonly runId: string;
}

export class DeputyAgent {
  /** Bare: whoever runs it directly or puts it into a graph gives the `run_id` in `configurable`. */
  readonly graph: AgentGraph;
  readonly descriptor: {
    readonly model: string;
    readonly promptSha256: string;
    readonly tools: readonly string[];
    readonly hooks: readonly string[];
    readonly maxTurns: number;
  };
  readonly #newId: () => string;

  constructor(parts: DeputyAgentParts) {
    this.graph = parts.graph;
    this.#newId = parts.newId;
    this.descriptor = {
      model: parts.model,
      promptSha256: sha256(parts.systemPrompt),
      tools: parts.tools.map(({ name }) => name),
      hooks: parts.hooks.map(({ name }) => name),
      maxTurns: parts.maxTurns,
    };
  }

  /** `options` are LangGraph's. A `run_id` in `configurable` is kept; otherwise the run gets one. */
  async stream(input: AgentInput, options: Partial<StreamOptions> = {}): Promise<AgentRun> {
    const { runId, config } = this.#configOf(options);
    const stream = await this.graph.stream(input, config);
    return { runId, [Symbol.asyncIterator]: () => stream[Symbol.asyncIterator]() };
  }

  /** The state the run ended with. */
  async invoke(input: AgentInput, options: Partial<StreamOptions> = {}): Promise<ThreadState> {
    const { config } = this.#configOf(options);
    const state: unknown = await this.graph.invoke(input, config);
    return state as ThreadState;
  }

  #configOf(options: Partial<StreamOptions>): { runId: string; config: StreamOptions } {
    const runId = runIdOf(options as RunnableConfig) ?? this.#newId();
    const config = {
      recursionLimit: recursionLimitFor(this.descriptor.maxTurns),
      // LangGraph's default starts tools before the checkpoint that scheduled them.
      durability: "sync" as const,
      ...options,
      configurable: { ...options.configurable, run_id: runId },
    };
    return { runId, config: config as StreamOptions };
  }
}
