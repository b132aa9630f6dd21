/**
 * The graphs of one thread, bound to it: what a run executes and what the thread's state is read through.
 * Owns which graph that is, which version of it a run is pinned to, the binding each one gets, and rendering the state; the
 * catalog owns how graphs are built. Invariant: a run is driven by the graph and version it was accepted with, or not at all.
 */
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { type BuiltGraph, type GraphBinding, type GraphCatalog, SAVER_KEY } from "../agent/graph-catalog.ts";
import type { ThreadState } from "../agent/thread-state/thread-state.ts";
import { toWireValues } from "../agent/wire/to-wire.ts";
import { invariant } from "../domain/shared/assert.ts";
import type { Principal } from "../domain/trust/principal.ts";
import type { RunRecord, RunStore } from "../platform/durable-storage/run-store.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { RunCommand } from "../protocol/thread-rpc.ts";
import { buildConfig, createConfig } from "./run-config.ts";

export interface ThreadGraphsPorts {
  readonly catalog: GraphCatalog;
  readonly runs: RunStore;
  readonly threadId: () => string;
  readonly binding: (principal: Principal | undefined) => GraphBinding;
  readonly saver: () => BaseCheckpointSaver;
  readonly principalOf: (run: RunRecord) => Principal;
  /** The graph that a thread without runs was made for. */
  readonly madeFor: () => unknown;
}

export class ThreadGraphs {
  readonly #ports: ThreadGraphsPorts;
  /** The graph for reading state, and what it was built for: it serves reads until another run is the newest. */
  #forState: { readonly key: string; readonly built: BuiltGraph } | undefined;

  constructor(ports: ThreadGraphsPorts) {
    this.#ports = ports;
  }

  /** The graph a run executes. */
  async forRun(run: RunRecord): Promise<BuiltGraph> {
    const binding = this.#ports.binding(this.#ports.principalOf(run));
    const { managed_subagents: managedSubagents, agent, body } = run.command;
    const version = run.notes?.graph_version;
    return this.#build(run.graphId, buildConfig(run), {
      ...binding,
      ...(version === undefined ? {} : { version }),
      ...(body.context ? { context: body.context } : {}),
      ...(managedSubagents === undefined ? {} : { managedSubagents }),
      ...(agent === undefined ? {} : { agent }),
    });
  }

  /** The graph of a create that is no run yet: to look at, not to run. */
  forCreate(command: RunCommand): Promise<BuiltGraph> {
    return this.#build(command.graph_id, createConfig(command), this.#ports.binding(undefined));
  }

  /** The graph of a thread that is being made with a history: it has no row yet that says which. */
  forHistory(graphId: string): Promise<BuiltGraph> {
    return this.#build(graphId, {}, this.#ports.binding(undefined));
  }

  /** A run as it is accepted: with the version of its graph that it stays with, whatever is deployed later. */
  pinned(run: RunRecord): RunRecord {
    const version = this.#ports.catalog.versionOf(run.graphId);
    return version === undefined ? run : { ...run, notes: { v: 1, ...run.notes, graph_version: version } };
  }

  /** With what this run asks for and does not get as asked, by the configuration and the admission of this wake. */
  withAdjustments(run: RunRecord): RunRecord {
    const { admission } = this.#ports.binding(undefined);
    const adjusted = this.#ports.catalog.adjusted(run.graphId, buildConfig(run), admission.snapshot().max_running);
    const { adjusted_options: _before, ...kept } = run.notes ?? { v: 1 };
    const isPlain = Object.keys(adjusted).length === 0;
    if (isPlain && run.notes === undefined) return run;
    return { ...run, notes: { ...kept, ...(isPlain ? {} : { adjusted_options: adjusted }) } };
  }

  /**
   * Whose channels the thread's state has: of its newest run's graph, served or not, else of the one it was made for, else
   * the lead agent's.
   */
  stateGraphId(): string {
    const used = this.#ports.runs.newestGraphId();
    if (used !== undefined) return used;
    const madeFor = this.#ports.madeFor();
    return typeof madeFor === "string" && this.#ports.catalog.has(madeFor) ? madeFor : LEAD_GRAPH_ID;
  }

  /**
   * The graph that reads the thread's state: as the newest run had it, a factory's for that run's config. Where the version
   * is gone, the current one reads; where the graph is gone, the state is read as it is stored.
   */
  async forState(): Promise<BuiltGraph> {
    const graphId = this.stateGraphId();
    const run = graphId === LEAD_GRAPH_ID ? undefined : this.#ports.runs.newestStarted();
    const key = `${graphId} ${run?.runId ?? ""}`;
    if (this.#forState?.key === key) return this.#forState.built;
    const version = run?.notes?.graph_version;
    const isServed = version !== undefined && this.#ports.catalog.serves(graphId, version);
    const binding = { ...this.#ports.binding(undefined), ...(isServed ? { version } : {}) };
    const built = await this.#build(graphId, run === undefined ? {} : buildConfig(run), binding);
    this.#forState = { key, built };
    return built;
  }

  /** The newest state of the lead, or of the child whose checkpoints stand under a namespace: they have the same channels. */
  async stateUnder(checkpointNs: string): Promise<Partial<ThreadState>> {
    const { graph, configurable } = await this.forState();
    // LangGraph looks a namespace up among the nodes, where no child is, unless it is handed the saver.
    const under = checkpointNs === "" ? {} : { checkpoint_ns: checkpointNs, [SAVER_KEY]: this.#ports.saver() };
    return (await graph.getState({ configurable: { ...configurable, ...under } })).values as Partial<ThreadState>;
  }

  /** The state at a checkpoint as JSON; the newest state for `undefined`. */
  async renderState(checkpointId: string | undefined): Promise<string> {
    const { graph, configurable } = await this.forState();
    const at = checkpointId === undefined ? {} : { checkpoint_id: checkpointId };
    const snapshot = await graph.getState({ configurable: { ...configurable, ...at } });
    // LangGraph answers a pruned checkpoint with an empty state, which would be a lie (P5): the reader is told of a gap.
    invariant(checkpointId === undefined || snapshot.createdAt !== undefined, "the checkpoint was pruned");
    return JSON.stringify(toWireValues(snapshot.values));
  }

  async #build(
    graphId: string,
    config: Parameters<GraphCatalog["build"]>[1],
    binding: GraphBinding,
  ): Promise<BuiltGraph> {
    const built = await this.#ports.catalog.build(graphId, config, binding);
    return { ...built, configurable: { ...built.configurable, thread_id: this.#ports.threadId() } };
  }
}
