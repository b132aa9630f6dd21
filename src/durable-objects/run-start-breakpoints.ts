/**
 * `interrupt_before` and `interrupt_after` of a run, when it is accepted and after a crash. LangGraph knows a breakpoint
 * only as the end of a stream: a run that died between the step and its own end would pass it by being resumed. So what
 * was committed is looked at first.
 */
import { ENTRY_NODE, type GraphCatalog } from "../agent/graph-catalog.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import type { Breakpoints } from "../protocol/run-start.ts";
import type { CreateRunBody } from "../protocol/runs.ts";
import type { RunCommand } from "../protocol/thread-rpc.ts";
import { createConfig } from "./run-config.ts";
import type { ThreadContext } from "./thread-context.ts";

/** Of the stream's options; absent for none. */
export function breakpointsOf({ interrupt_before: before, interrupt_after: after }: CreateRunBody) {
  return { ...toOption("interruptBefore", before), ...toOption("interruptAfter", after) };
}

function toOption(name: string, nodes: Breakpoints | null | undefined): Record<string, unknown> {
  if (nodes === null || nodes === undefined) return {};
  return { [name]: nodes === "*" || nodes.includes("*") ? "*" : nodes };
}

/** A create that names a node which is not there, with those that are. Needs no thread: asked of a fresh one too. */
export async function refuseBreakpoints(catalog: GraphCatalog, command: RunCommand): Promise<ApiRefusal | undefined> {
  const { interrupt_before, interrupt_after } = command.body;
  const named = Object.entries({ interrupt_before, interrupt_after }).flatMap(([option, nodes]) =>
    listed(nodes).map((node) => ({ option, node })),
  );
  if (named.length === 0) return undefined;
  const nodes = await catalog.nodesOf?.(command.graph_id, createConfig(command));
  const wrong = named.find(({ node }) => nodes?.includes(node) === false);
  if (wrong === undefined) return undefined;
  const message = `${wrong.option}: the graph has no node '${wrong.node}'; its nodes: ${nodes?.join(", ")}, or "*" for all`;
  return { code: "invalid_request", message, details: { path: [wrong.option] } };
}

function listed(nodes: Breakpoints | null | undefined): readonly string[] {
  return nodes === null || nodes === undefined || nodes === "*" ? [] : nodes.filter((node) => node !== "*");
}

/** True when the run committed a step at which it was told to stop. A run that went on from a breakpoint made no step yet. */
export async function standsAtBreakpoint(context: ThreadContext, run: RunRecord): Promise<boolean> {
  const { interrupt_before: before, interrupt_after: after } = run.command.body;
  if (isNone(before) && isNone(after)) return false;
  try {
    const { graph, configurable } = await context.graphs.forRun(run);
    const state = await graph.getState({ configurable: { ...configurable } });
    // Input, a command's update and a fork are no steps of the graph's.
    if (state.next.length === 0 || state.metadata?.source !== "loop") return false;
    if (names(before, state.next)) return true;
    if (isNone(after) || state.parentConfig === undefined) return false;
    const at = state.parentConfig.configurable?.["checkpoint_id"] as string | undefined;
    const parent = await graph.getState({ configurable: { ...configurable, checkpoint_id: at } });
    return names(
      after,
      parent.tasks.map((task) => task.name),
    );
  } catch (fault) {
    // A state that cannot be read is the driver's to fail over: here it would be looked at again for ever.
    context.onFault(fault);
    return false;
  }
}

function isNone(nodes: Breakpoints | null | undefined): boolean {
  return nodes === null || nodes === undefined || nodes.length === 0;
}

function names(breakpoints: Breakpoints | null | undefined, nodes: readonly string[]): boolean {
  if (breakpoints === null || breakpoints === undefined) return false;
  const met = nodes.filter((node) => node !== ENTRY_NODE);
  return breakpoints === "*" || breakpoints.includes("*")
    ? met.length > 0
    : met.some((node) => breakpoints.includes(node));
}
