/**
 * The graphs of `deputy.config.ts` by id and version. Owns which entry an id and a version mean: the current one is what
 * new runs get, earlier ones are there for runs that were accepted with them, and nothing stands in for one that is gone.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { DeputyConfig } from "../../config.ts";
import type { RunnableGraph } from "../graph-catalog.ts";
import { toGraph } from "../to-graph.ts";

/** What a factory is told beside the config, as LangGraph's server tells it. */
export interface FactoryRuntime {
  readonly accessContext: "threads.create_run" | "threads.read" | "assistants.read";
  /** Null where nothing is run. */
  readonly executionRuntime: { readonly context: unknown } | null;
}

type AgentOrGraph = RunnableGraph | { readonly graph: RunnableGraph };
type GraphFactory = (config: RunnableConfig, runtime: FactoryRuntime) => AgentOrGraph | Promise<AgentOrGraph>;
type GraphEntry = AgentOrGraph | GraphFactory;

export class ServedGraphs {
  readonly #graphs: ReadonlyMap<string, DeputyConfig["graphs"][string]>;

  constructor(graphs: DeputyConfig["graphs"]) {
    this.#graphs = new Map(Object.entries(graphs));
  }

  has(graphId: string): boolean {
    return this.#graphs.has(graphId);
  }

  /** Of the current one; `undefined` when it has none, or there is no such graph. */
  versionOf(graphId: string): string | undefined {
    return this.#graphs.get(graphId)?.version;
  }

  /** `undefined` for a version means the current one, whatever it is called. */
  serves(graphId: string, version: string | undefined): boolean {
    return this.#find(graphId, version) !== undefined;
  }

  /** `undefined` for a graph or version that is not served. Throws what a factory throws. */
  async build(
    { graphId, version }: { readonly graphId: string; readonly version: string | undefined },
    config: RunnableConfig,
    runtime: FactoryRuntime,
  ): Promise<RunnableGraph | undefined> {
    const entry = this.#find(graphId, version);
    if (entry === undefined) return undefined;
    return toGraph(typeof entry === "function" ? await entry(config, runtime) : entry);
  }

  #find(graphId: string, version: string | undefined): GraphEntry | undefined {
    const served = this.#graphs.get(graphId);
    if (served === undefined) return undefined;
    if (version === undefined || version === served.version) return served.graph as GraphEntry;
    return Object.hasOwn(served.previous, version) ? (served.previous[version] as GraphEntry) : undefined;
  }
}
