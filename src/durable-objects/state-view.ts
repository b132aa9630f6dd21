/**
 * LangGraph's snapshots as the API's ThreadState (langgraph-api.md B3). Owns the wire shape and what `select` leaves of
 * it; the graph and the saver own the state.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { StateSnapshot } from "@langchain/langgraph";
import { toWire, toWireState, toWireValues } from "../agent/wire/to-wire.ts";
import type { CheckpointRef, SelectedState, ThreadStateBody } from "../protocol/threads.ts";

const EMPTY_STATE: ThreadStateBody = {
  values: {},
  next: [],
  checkpoint: null,
  metadata: {},
  created_at: null,
  parent_checkpoint: null,
  tasks: [],
};

const VALUES_PREFIX = "values.";

/** False for what LangGraph answers about a checkpoint that is not there. */
export function isStored(snapshot: StateSnapshot): boolean {
  return snapshot.createdAt !== undefined;
}

export function toStateBody(snapshot: StateSnapshot): ThreadStateBody {
  // LangGraph answers an empty thread with a snapshot that names no checkpoint.
  if (snapshot.config.configurable?.["checkpoint_id"] === undefined) return EMPTY_STATE;
  return {
    values: toWireValues(snapshot.values),
    next: [...snapshot.next],
    checkpoint: toCheckpointRef(snapshot.config),
    metadata: toWire(snapshot.metadata ?? {}) as Record<string, unknown>,
    created_at: snapshot.createdAt ?? null,
    parent_checkpoint: snapshot.parentConfig === undefined ? null : toCheckpointRef(snapshot.parentConfig),
    tasks: snapshot.tasks.map((task) => toTask(task)),
  };
}

/** The fields that were asked for; all of them without a selection. `values.<key>` is one key of the values. */
export function selectFields(state: ThreadStateBody, select: readonly string[] | null | undefined): SelectedState {
  if (select === undefined || select === null) return state;
  const whole: Record<string, unknown> = { ...state, interrupts: state.tasks.flatMap((task) => task.interrupts) };
  const selected: Record<string, unknown> = {};
  for (const field of select) {
    if (field.startsWith(VALUES_PREFIX)) selected["values"] ??= {};
    else selected[field] = whole[field];
  }
  if (!select.includes("values") && selected["values"] !== undefined) {
    const keys = select
      .filter((field) => field.startsWith(VALUES_PREFIX))
      .map((field) => field.slice(VALUES_PREFIX.length));
    selected["values"] = Object.fromEntries(Object.entries(state.values).filter(([key]) => keys.includes(key)));
  }
  return selected;
}

export function toCheckpointRef(config: RunnableConfig): CheckpointRef {
  const { thread_id, checkpoint_ns, checkpoint_id, checkpoint_map } = (config.configurable ?? {}) as {
    [field in "thread_id" | "checkpoint_ns" | "checkpoint_id"]?: string;
  } & { checkpoint_map?: Record<string, unknown> };
  return {
    thread_id: thread_id ?? "",
    checkpoint_ns: checkpoint_ns ?? "",
    checkpoint_id: checkpoint_id ?? null,
    checkpoint_map: checkpoint_map ?? null,
  };
}

function toTask(task: StateSnapshot["tasks"][number]): ThreadStateBody["tasks"][number] {
  const nested = toNested(task.state);
  const { path, result } = task as { path?: readonly unknown[]; result?: unknown };
  return {
    id: task.id,
    name: task.name,
    error: task.error === undefined ? null : toErrorText(task.error),
    interrupts: task.interrupts.map(({ id, value }) => ({ ...(id === undefined ? {} : { id }), value: toWire(value) })),
    checkpoint: nested.config === undefined ? null : toCheckpointRef(nested.config),
    state: nested.snapshot === undefined ? null : toStateBody(nested.snapshot),
    result: toWireState(result ?? null),
    path: [...(path ?? [])],
  };
}

/** A task's subgraph: its state when it was asked for, else where that state stands. */
function toNested(state: unknown): { config?: RunnableConfig; snapshot?: StateSnapshot } {
  if (typeof state !== "object" || state === null) return {};
  if ("configurable" in state) return { config: state as RunnableConfig };
  return "values" in state ? { snapshot: state as StateSnapshot, config: (state as StateSnapshot).config } : {};
}

function toErrorText(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : JSON.stringify(error);
}
