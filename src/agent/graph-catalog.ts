/**
 * The graphs a deployment serves, by id: the port through which the run driver gets something to stream.
 * Owns the shape; `lead/` and `deputy.config.ts` fill it. A graph is built for one run (or one read) with what binds it
 * to a thread.
 */
import type { BaseCheckpointSaver, StateSnapshot } from "@langchain/langgraph";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { AgentSnapshot } from "../domain/assistant/agent-snapshot.ts";
import type { ManagedSubagent } from "../domain/delegation/managed-subagent.ts";
import type { AdjustedOptions } from "../domain/run/adjusted-options.ts";
import type { Principal } from "../domain/trust/principal.ts";
import type { AgentServices } from "./graph/agent-services.ts";
import type { CircuitBreakers } from "./models/circuit-breakers.ts";
import type { AdmissionController } from "./subagents/admission-controller.ts";
import type { DelegationJournal } from "./subagents/delegation-journal.ts";
import type { BatchService } from "./tools/batch-tools.ts";

/** Where LangGraph looks for a saver that the graph was not compiled with. */
export const SAVER_KEY = "__pregel_checkpointer";

/** What the driver and the state routes use of a compiled LangGraph graph. */
export interface RunnableGraph {
  readonly channels: Readonly<Record<string, unknown>>;
  /** By name, LangGraph's entry among them; absent on graphs that are no LangGraph graph. */
  readonly nodes?: Readonly<Record<string, unknown>>;
  stream(input: unknown, options: Record<string, unknown>): Promise<AsyncIterable<unknown>>;
  /** LangChain's events of the run, version `v2`; what `stream` gives is among them. */
  streamEvents(input: unknown, options: Record<string, unknown>): AsyncIterable<unknown>;
  getState(config: RunnableConfig, options?: { subgraphs?: boolean }): Promise<StateSnapshot>;
  getStateHistory(config: RunnableConfig, options?: Record<string, unknown>): AsyncIterable<StateSnapshot>;
  updateState(config: RunnableConfig, values: unknown, asNode?: string): Promise<RunnableConfig>;
  /** Steps of a thread that is made with a history; absent on graphs that are no LangGraph graph. */
  bulkUpdateState?(
    config: RunnableConfig,
    supersteps: readonly { updates: readonly { values?: unknown; asNode?: string }[] }[],
  ): Promise<RunnableConfig>;
  /** Its nodes that are graphs, by namespace. */
  getSubgraphsAsync?(namespace?: string, recurse?: boolean): AsyncIterable<[string, unknown]>;
}

/** LangGraph's entry, which is no node of anybody's. */
export const ENTRY_NODE = "__start__";

/** What a client may name. */
export function nodeNames({ nodes }: Pick<RunnableGraph, "nodes">): string[] {
  return Object.keys(nodes ?? {}).filter((name) => name !== ENTRY_NODE);
}

/** What ties a graph to one thread's object. */
export interface GraphBinding {
  readonly saver: BaseCheckpointSaver;
  readonly services: AgentServices;
  readonly admission: AdmissionController;
  readonly journal: DelegationJournal;
  /** The object's, so that every run of the thread sees a provider failing. */
  readonly circuits: CircuitBreakers;
  /** Whose run it is, as it was accepted; absent for a graph that only reads state, which has no use for tools. */
  readonly principal?: Principal;
  readonly batches?: BatchService;
  /** The enabled managed subagents, as the run was accepted with them. */
  readonly managedSubagents?: readonly ManagedSubagent[];
  /** The custom agent, as the run was accepted with it; absent for none. */
  readonly agent?: AgentSnapshot;
  /** The version of an operator's graph; absent for the current one, whatever it is called. */
  readonly version?: string;
  /** The run's context, where it gives one. */
  readonly context?: unknown;
}

export interface GraphCatalog {
  has(graphId: string): boolean;
  /** What a new run of the graph is pinned to; `undefined` for a graph without versions. */
  versionOf(graphId: string): string | undefined;
  /** Whether a run that was accepted with that version finds it here; without one, whether it finds the graph. */
  serves(graphId: string, version: string | undefined): boolean;
  /** What a run of this config asks for and does not get as asked. `maxRunning`: of the admission it will run under. */
  adjusted(graphId: string, config: RunnableConfig, maxRunning: number): AdjustedOptions;
  /**
   * Names of the graph's nodes as a run of this config would have them, without a thread to bind it to; `undefined` when
   * nobody can tell, as of a factory that fails. Absent where no client names nodes.
   */
  nodesOf?(graphId: string, config: RunnableConfig): Promise<readonly string[] | undefined>;
  /**
   * `config` is the run's; a factory graph is called with it. A graph that is not served, or whose factory fails, is one
   * that fails its run with the reason and reads the state as it is stored.
   */
  build(graphId: string, config: RunnableConfig, binding: GraphBinding): Promise<BuiltGraph>;
}

export interface BuiltGraph {
  readonly graph: RunnableGraph;
  /** Merged into `configurable` of every call, so that a graph shared by threads finds this thread's saver. */
  readonly configurable: Readonly<Record<string, unknown>>;
  /** Supersteps LangGraph may take before it stops by itself. */
  readonly recursionLimit: number;
}
