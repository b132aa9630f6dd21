/**
 * The thread's state as clients read and edit it. Owns which checkpoint a request means and the checks before an edit:
 * a refused one leaves the thread as it was. The wire shape is `state-view.ts`; the graph and the saver own the state.
 */
import type { StateSnapshot } from "@langchain/langgraph";
import type { ThreadState } from "../agent/thread-state/thread-state.ts";
import { err, ok } from "../domain/shared/result.ts";
import type { RpcResult } from "../protocol/errors.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { HistoryBody, SelectedState, StateQuery, ThreadStateBody, UpdateStateBody } from "../protocol/threads.ts";
import { prepareLeadInput } from "./run-input.ts";
import { waitingInterrupts } from "./run-start-interrupts.ts";
import { findStatePlace } from "./state-place.ts";
import { isStored, selectFields, toCheckpointRef, toStateBody } from "./state-view.ts";
import type { ThreadContext } from "./thread-context.ts";

/** LangGraph's own words in a checkpoint's metadata, which it reads again; a client writes none of them. */
const RESERVED_METADATA = ["source", "step", "parents", "writes", "thread_id", "counters_since_delta_snapshot"];

/** Of a checkpoint's metadata as JSON: it is read with every state. */
const CHECKPOINT_METADATA_CHARS_MAX = 64_000;

export class StateService {
  readonly #context: ThreadContext;

  constructor(context: ThreadContext) {
    this.#context = context;
  }

  async get(query: StateQuery): Promise<RpcResult<SelectedState>> {
    const state = await this.#read(query);
    return state.ok ? ok(selectFields(state.value, query.select)) : state;
  }

  /** The newest state of the root, whole. */
  async current(): Promise<RpcResult<ThreadStateBody>> {
    return this.#read({});
  }

  /** Newest first. */
  async history(body: HistoryBody): Promise<RpcResult<SelectedState[]>> {
    const place = await findStatePlace(this.#context, body.checkpoint ?? {});
    if (place === undefined) return noCheckpoint(body.checkpoint);
    const before = beforeId(body.before);
    const ns = body.checkpoint?.checkpoint_ns ?? "";
    // LangGraph would take an unknown id for a place in the order of ids, and answer the first page again.
    if (before !== undefined && !this.#context.saver.has(this.#context.threadId, ns, before)) {
      return noCheckpoint({ checkpoint_id: before });
    }
    const options = {
      limit: body.limit,
      ...(body.metadata ? { filter: body.metadata } : {}),
      ...(before === undefined ? {} : { before: { configurable: { checkpoint_id: before } } }),
    };
    const states: SelectedState[] = [];
    for await (const snapshot of place.graph.getStateHistory(place.config, options)) {
      states.push(selectFields(toStateBody(await this.#asItWaits(snapshot)), body.select));
    }
    return ok(states);
  }

  update(body: UpdateStateBody): Promise<RpcResult<{ checkpoint: Record<string, unknown> }>> {
    return this.#context.edits.run(() => this.#update(body));
  }

  /** Merges into the metadata of the newest checkpoint, so that `history` finds it by it. One row. */
  patchMetadata(metadata: Record<string, unknown>): Promise<RpcResult<null>> {
    return this.#context.edits.run(async () => {
      if (this.#context.runs.active().length > 0) return busy();
      const reserved = Object.keys(metadata).find((key) => RESERVED_METADATA.includes(key) || key.startsWith("__"));
      if (reserved !== undefined) {
        const message = `metadata.${reserved}: is written by the graph; not by a client: ${RESERVED_METADATA.join(", ")} and names that start with '__'`;
        return err({ code: "invalid_request", message, details: { path: ["metadata", reserved] } });
      }
      const head = this.#context.headCheckpointId();
      if (head === null) return err({ code: "not_found", message: "the thread has no state yet" });
      const patched = await this.#context.saver.patchMetadata(
        { threadId: this.#context.threadId, checkpointNs: "", checkpointId: head },
        metadata,
        CHECKPOINT_METADATA_CHARS_MAX,
      );
      if (patched) return ok(null);
      const message = `metadata: at most ${CHECKPOINT_METADATA_CHARS_MAX} characters of JSON in a checkpoint`;
      return err({ code: "too_large", message, details: { path: ["metadata"], limit: CHECKPOINT_METADATA_CHARS_MAX } });
    });
  }

  async #read(query: StateQuery): Promise<RpcResult<ThreadStateBody>> {
    const place = await findStatePlace(this.#context, query);
    if (place === undefined) return noCheckpoint(query);
    const snapshot = await place.graph.getState(place.config, { subgraphs: query.subgraphs === true });
    const isNamed = place.checkpointId !== undefined || (query.checkpoint_ns ?? "") !== "";
    if (isNamed && !isStored(snapshot)) return noCheckpoint(query);
    return ok(toStateBody(await this.#asItWaits(snapshot)));
  }

  /** At the head of the thread: without the questions of tasks that are done, which LangGraph tells until the next step. */
  async #asItWaits(snapshot: StateSnapshot): Promise<StateSnapshot> {
    const { checkpoint_id, checkpoint_ns } = (snapshot.config.configurable ?? {}) as Record<string, string | undefined>;
    if (!snapshot.tasks.some((task) => task.interrupts.length > 0)) return snapshot;
    if ((checkpoint_ns ?? "") !== "" || checkpoint_id !== this.#context.headCheckpointId()) return snapshot;
    const waiting = new Set(await waitingInterrupts(this.#context, snapshot));
    const tasks = snapshot.tasks.map((task) => {
      return { ...task, interrupts: task.interrupts.filter((asked) => waiting.has(asked)) };
    });
    return { ...snapshot, tasks };
  }

  async #update(body: UpdateStateBody): Promise<RpcResult<{ checkpoint: Record<string, unknown> }>> {
    if (this.#context.runs.active().length > 0) return busy();
    // LangGraph stumbles over names that every object has.
    if (body.as_node !== undefined && body.as_node in Object.prototype) {
      return err({ code: "invalid_request", message: `as_node: the graph has no node '${body.as_node}'` });
    }
    const at = { ...body.checkpoint, ...(body.checkpoint_id ? { checkpoint_id: body.checkpoint_id } : {}) };
    const place = await findStatePlace(this.#context, at);
    if (place === undefined) return noCheckpoint(at);
    const snapshot = await place.graph.getState(place.config);
    const isNamed = place.checkpointId !== undefined || (at.checkpoint_ns ?? "") !== "";
    if (isNamed && !isStored(snapshot)) return noCheckpoint(at);
    const values = await this.prepareValues(snapshot.values as Partial<ThreadState>, body.values);
    if (!values.ok) return values;
    try {
      const updated = await place.graph.updateState(place.config, values.value, body.as_node);
      return ok({ checkpoint: toCheckpointRef(updated) });
    } catch (error) {
      const refused = refusedUpdate(error);
      if (refused !== undefined) return refused;
      throw error;
    }
  }

  /** Values as the thread's graph may take them: messages become message objects with ids, removals are checked. */
  async prepareValues(
    state: Partial<ThreadState>,
    values: unknown,
    graphId = this.#context.graphs.stateGraphId(),
  ): Promise<RpcResult<unknown>> {
    if (values === null || values === undefined) return ok(null);
    // Only the lead's channels are known here; another graph's own reducers take what its node would write.
    if (graphId !== LEAD_GRAPH_ID) return ok(values);
    if (Array.isArray(values) || typeof values !== "object") {
      return err({ code: "invalid_request", message: "values: must be one object", details: { path: ["values"] } });
    }
    const prepared = prepareLeadInput(state.messages ?? [], values as Record<string, unknown>, () =>
      this.#context.newId(),
    );
    if (!prepared.ok) return prepared;
    const { values: checked, messages } = prepared.value;
    return ok(checked["messages"] === undefined ? checked : { ...checked, messages });
  }
}

/** What LangGraph says about an update that no node can have made. */
export function refusedUpdate(error: unknown): RpcResult<never> | undefined {
  if (!(error instanceof Error) || error.name !== "InvalidUpdateError") return undefined;
  return err({ code: "invalid_request", message: error.message });
}

function busy(): RpcResult<never> {
  return err({ code: "thread_busy", message: "thread has an active run; its state cannot be edited now" });
}

function beforeId(before: HistoryBody["before"]): string | undefined {
  if (before === null || before === undefined) return undefined;
  if (typeof before === "string") return before;
  return "configurable" in before
    ? (before as { configurable: { checkpoint_id: string } }).configurable.checkpoint_id
    : (before as { checkpoint_id: string }).checkpoint_id;
}

function noCheckpoint(
  at: { checkpoint_id?: string | null | undefined; checkpoint_ns?: string | null | undefined } | null | undefined,
): RpcResult<never> {
  const under = at?.checkpoint_ns ? ` under '${at.checkpoint_ns}'` : "";
  const what = at?.checkpoint_id ? `no checkpoint '${at.checkpoint_id}'${under}` : `no checkpoint${under}`;
  return err({ code: "not_found", message: `${what} on this thread` });
}
