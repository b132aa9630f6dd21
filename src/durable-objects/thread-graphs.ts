/**
 * The graphs of one thread, bound to it: what a run executes and what the thread's state is read through.
 * Owns which graph that is, the binding each one gets, and rendering the state; the catalog owns how graphs are built.
 */
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { type BuiltGraph, type GraphBinding, type GraphCatalog, SAVER_KEY } from "../agent/graph-catalog.ts";
import type { ThreadState } from "../agent/thread-state/thread-state.ts";
import { toWireValues } from "../agent/wire/to-wire.ts";
import { invariant } from "../domain/shared/assert.ts";
import type { Principal } from "../domain/trust/principal.ts";
import type { RunRecord, RunStore } from "../platform/durable-storage/run-store.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import { buildConfig } from "./run-config.ts";

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
  /** Graphs for reading state, by id: they carry no run, so one a wake serves every read. */
  readonly #forState = new Map<string, BuiltGraph>();

  constructor(ports: ThreadGraphsPorts) {
    this.#ports = ports;
  }

  /** The graph a run executes. */
  async forRun(run: RunRecord): Promise<BuiltGraph> {
    const binding = this.#ports.binding(this.#ports.principalOf(run));
    const { managed_subagents: managedSubagents, agent } = run.command;
    return this.#build(run.graphId, buildConfig(run), {
      ...binding,
      ...(managedSubagents === undefined ? {} : { managedSubagents }),
      ...(agent === undefined ? {} : { agent }),
    });
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

  /** Whose channels the thread's state has: of its newest run's graph, else of the one it was made for, else the lead agent's. */
  stateGraphId(): string {
    const known = this.#ports.runs.newestGraphId() ?? this.#ports.madeFor();
    return typeof known === "string" && this.#ports.catalog.has(known) ? known : LEAD_GRAPH_ID;
  }

  /** The graph that reads the thread's state. */
  async forState(): Promise<BuiltGraph> {
    const graphId = this.stateGraphId();
    const known = this.#forState.get(graphId);
    if (known !== undefined) return known;
    const built = await this.#build(graphId, {}, this.#ports.binding(undefined));
    this.#forState.set(graphId, built);
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
