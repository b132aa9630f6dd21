/**
 * An operator's graph as Deputy runs it: with the thread's saver, whatever it was compiled with, and with messages that
 * keep their ids. Owns nothing of the graph: it is shared by every thread, so it is never changed.
 */
import type { RunnableGraph } from "../graph-catalog.ts";
import { withInputIds } from "./message-ids.ts";

interface CompiledGraph {
  readonly checkpointer?: unknown;
  readonly config?: { readonly recursionLimit?: number };
  withConfig?(config: Record<string, never>): object;
}

/** LangGraph's own default. */
const DEFAULT_RECURSION_LIMIT = 25;

/** What the run asks for, else what the graph was compiled with, else LangGraph's default. */
export function recursionLimitOf(graph: object, asked: number | undefined): number {
  return asked ?? (graph as CompiledGraph).config?.recursionLimit ?? DEFAULT_RECURSION_LIMIT;
}

/** `channels` are those whose messages get ids. */
export function serveGraph(graph: RunnableGraph, channels: ReadonlySet<string>): RunnableGraph {
  const saved = withoutOwnSaver(graph);
  if (channels.size === 0) return saved;
  return new Proxy(saved, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown;
      if (typeof value !== "function") return value;
      if (name !== "stream" && name !== "streamEvents") return value.bind(target) as unknown;
      return (input: unknown, options: Record<string, unknown>) =>
        target[name](withInputIds(input, channels, runIdOf(options)), options);
    },
  });
}

function runIdOf({ configurable }: Record<string, unknown>): string {
  return String((configurable as { run_id?: unknown } | undefined)?.run_id);
}

/**
 * A saver in the config comes before a graph's own one, but not before `checkpointer: false`, nor beside `true`. A copy as
 * LangGraph's `withConfig` makes it, because other threads run the same graph.
 */
function withoutOwnSaver(graph: RunnableGraph): RunnableGraph {
  const compiled = graph as CompiledGraph;
  if (typeof compiled.checkpointer !== "boolean" || compiled.withConfig === undefined) return graph;
  const copy = compiled.withConfig({}) as { checkpointer?: unknown };
  copy.checkpointer = undefined;
  return copy as unknown as RunnableGraph;
}
