/**
 * ThreadState as clients read and edit it (langgraph-api.md B3, ThreadState). Owns the wire shape; the graph and the
 * saver own the state. An edit is checked before it is written, so that a refused one leaves the thread as it was.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { StateSnapshot } from "@langchain/langgraph";
import { toWire, toWireValues } from "../agent/wire/to-wire.ts";
import type { ThreadState } from "../agent/thread-state/thread-state.ts";
import { err, ok } from "../domain/shared/result.ts";
import type { RpcResult } from "../protocol/errors.ts";
import type { CheckpointRef, HistoryBody, ThreadStateBody, UpdateStateBody } from "../protocol/threads.ts";
import { prepareLeadInput } from "./run-input.ts";
import type { ThreadContext } from "./thread-context.ts";

const EMPTY_STATE: ThreadStateBody = {
  values: {},
  next: [],
  checkpoint: null,
  metadata: {},
  created_at: null,
  parent_checkpoint: null,
  tasks: [],
};

export class StateService {
  readonly #context: ThreadContext;

  constructor(context: ThreadContext) {
    this.#context = context;
  }

  async get(query: { checkpoint_id?: string; subgraphs?: boolean }): Promise<RpcResult<ThreadStateBody>> {
    const { graph, configurable } = await this.#context.graphs.forState();
    const at = query.checkpoint_id === undefined ? {} : { checkpoint_id: query.checkpoint_id };
    if (query.checkpoint_id !== undefined && !(await this.#context.hasCheckpoint(query.checkpoint_id)))
      return noCheckpoint(query.checkpoint_id);
    const snapshot = await graph.getState(
      { configurable: { ...configurable, ...at } },
      { subgraphs: query.subgraphs === true },
    );
    return ok(this.#toBody(snapshot));
  }

  /** Newest first. */
  async history(body: HistoryBody): Promise<RpcResult<ThreadStateBody[]>> {
    const { graph, configurable } = await this.#context.graphs.forState();
    const before = beforeId(body.before);
    const from = body.checkpoint?.checkpoint_id;
    const states: ThreadStateBody[] = [];
    const options = {
      limit: body.limit,
      ...(body.metadata ? { filter: body.metadata } : {}),
      ...(before === undefined ? {} : { before: { configurable: { ...configurable, checkpoint_id: before } } }),
    };
    const config = { configurable: { ...configurable, ...(from ? { checkpoint_id: from } : {}) } };
    for await (const snapshot of graph.getStateHistory(config, options)) states.push(this.#toBody(snapshot));
    return ok(states);
  }

  update(body: UpdateStateBody): Promise<RpcResult<{ checkpoint: Record<string, unknown> }>> {
    return this.#context.edits.run(() => this.#update(body));
  }

  async #update(body: UpdateStateBody): Promise<RpcResult<{ checkpoint: Record<string, unknown> }>> {
    if (this.#context.runs.active().length > 0) {
      return err({ code: "thread_busy", message: "thread has an active run; its state cannot be edited now" });
    }
    const { graph, configurable } = await this.#context.graphs.forState();
    // LangGraph stumbles over names that every object has.
    if (body.as_node !== undefined && body.as_node in Object.prototype) {
      return err({ code: "invalid_request", message: `as_node: the graph has no node '${body.as_node}'` });
    }
    const at = body.checkpoint_id ?? body.checkpoint?.checkpoint_id;
    if (at && !(await this.#context.hasCheckpoint(at))) return noCheckpoint(at);
    const config: RunnableConfig = { configurable: { ...configurable, ...(at ? { checkpoint_id: at } : {}) } };
    const state = (await graph.getState(config)).values as ThreadState;
    const values = await this.#prepare(state, body);
    if (!values.ok) return values;
    try {
      const updated = await graph.updateState(config, values.value, body.as_node);
      return ok({ checkpoint: toRef(updated) });
    } catch (error) {
      if (error instanceof Error && error.name === "InvalidUpdateError") {
        return err({ code: "invalid_request", message: error.message });
      }
      throw error;
    }
  }

  async #prepare(state: ThreadState, body: UpdateStateBody): Promise<RpcResult<unknown>> {
    if (body.values === null || body.values === undefined) return ok(null);
    if (Array.isArray(body.values)) {
      return err({ code: "invalid_request", message: "values: must be one object", details: { path: ["values"] } });
    }
    const prepared = prepareLeadInput(state.messages ?? [], body.values, () => this.#context.newId());
    if (!prepared.ok) return prepared;
    const { values, messages } = prepared.value;
    return ok(values["messages"] === undefined ? values : { ...values, messages });
  }

  #toBody(snapshot: StateSnapshot): ThreadStateBody {
    // LangGraph answers an empty thread with a snapshot that names no checkpoint.
    if (snapshot.config.configurable?.["checkpoint_id"] === undefined) return EMPTY_STATE;
    return {
      values: toWireValues(snapshot.values),
      next: [...snapshot.next],
      checkpoint: toRef(snapshot.config),
      metadata: toWire(snapshot.metadata ?? {}) as Record<string, unknown>,
      created_at: snapshot.createdAt ?? null,
      parent_checkpoint: snapshot.parentConfig === undefined ? null : toRef(snapshot.parentConfig),
      tasks: snapshot.tasks.map((task) => toTask(task)),
    };
  }
}

function toTask(task: StateSnapshot["tasks"][number]): ThreadStateBody["tasks"][number] {
  const nested = toNested(task.state);
  return {
    id: task.id,
    name: task.name,
    error: task.error === undefined ? null : toErrorText(task.error),
    interrupts: task.interrupts.map(({ id, value }) => ({ ...(id === undefined ? {} : { id }), value: toWire(value) })),
    checkpoint: nested.config === undefined ? null : toRef(nested.config),
    state: nested.snapshot === undefined ? null : toWireValues(nested.snapshot.values),
  };
}

/** A task's child graph: its state when it was asked for, else where that state stands. */
function toNested(state: unknown): { config?: RunnableConfig; snapshot?: StateSnapshot } {
  if (typeof state !== "object" || state === null) return {};
  if ("configurable" in state) return { config: state as RunnableConfig };
  return "values" in state ? { snapshot: state as StateSnapshot, config: (state as StateSnapshot).config } : {};
}

function toErrorText(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : JSON.stringify(error);
}

function toRef(config: RunnableConfig): CheckpointRef {
  const { thread_id, checkpoint_ns, checkpoint_id } = (config.configurable ?? {}) as Record<string, string | undefined>;
  return { thread_id: thread_id ?? "", checkpoint_ns: checkpoint_ns ?? "", checkpoint_id: checkpoint_id ?? null };
}

function beforeId(before: HistoryBody["before"]): string | undefined {
  if (before === null || before === undefined) return undefined;
  if (typeof before === "string") return before;
  if ("configurable" in before)
    return (before as { configurable: { checkpoint_id: string } }).configurable.checkpoint_id;
  return (before as { checkpoint_id?: string | null }).checkpoint_id ?? undefined;
}

function noCheckpoint(checkpointId: string): RpcResult<never> {
  return err({ code: "not_found", message: `no checkpoint '${checkpointId}' on this thread` });
}
