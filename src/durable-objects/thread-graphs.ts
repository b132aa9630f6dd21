/**
 * The graphs of one thread, bound to it: what a run executes and what the thread's state is read through.
 * Owns which graph that is, the binding each one gets, and rendering the state; the catalog owns how graphs are built.
 */
import type { BuiltGraph, GraphBinding, GraphCatalog } from "../agent/graph-catalog.ts";
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
  readonly principalOf: (run: RunRecord) => Principal;
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

  /** The graph whose channels the thread's state has: its newest run's, else the lead agent's. */
  async forState(): Promise<BuiltGraph> {
    const newest = this.#ports.runs.newestGraphId() ?? LEAD_GRAPH_ID;
    const graphId = this.#ports.catalog.has(newest) ? newest : LEAD_GRAPH_ID;
    const known = this.#forState.get(graphId);
    if (known !== undefined) return known;
    const built = await this.#build(graphId, {}, this.#ports.binding(undefined));
    this.#forState.set(graphId, built);
    return built;
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
