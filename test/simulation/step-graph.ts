/**
 * The graph of the simulated runs: a list of steps, over the object's real checkpointer, with LangGraph's own rules. Input
 * makes a checkpoint of its own; a step's writes commit before the checkpoint that takes them in; `null` goes on after
 * the newest checkpoint, whatever run it is of; nothing left to do is the end. It stands in for LangGraph because it
 * takes a thirtieth of the time and asks neither clock nor randomness; `lead-runs.ts` has the real one.
 */
import { AIMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, Checkpoint, StateSnapshot } from "@langchain/langgraph";
import type { BuiltGraph, GraphBinding, GraphCatalog } from "../../src/agent/graph-catalog.ts";
import type { RunLedger } from "./run-ledger.ts";
import type { Process, World } from "./world.ts";

export const STEP_GRAPH_ID = "steps";

/** `delegate` takes a slot of the thread's admission first; `fail` throws. */
export type StepKind = "work" | "delegate" | "fail";

interface StepState {
  readonly runId: string;
  readonly steps: readonly StepKind[];
  readonly done: number;
  /** What each run left, in order. */
  readonly log: readonly string[];
}

interface Head {
  readonly id: string;
  readonly state: StepState;
  readonly writes: readonly (readonly [taskId: string, channel: string, value: unknown])[];
}

export interface StepGraphPorts {
  readonly world: World;
  readonly ledger: RunLedger;
  readonly process: Process;
  readonly newId: (notBefore?: number) => string;
}

export function stepCatalog(ports: StepGraphPorts): GraphCatalog {
  return {
    has: (graphId) => graphId === STEP_GRAPH_ID,
    versionOf: () => undefined,
    serves: (graphId) => graphId === STEP_GRAPH_ID,
    adjusted: () => ({}),
    build: async (_graphId, _config, binding): Promise<BuiltGraph> => ({
      graph: new StepGraph(ports, binding) as unknown as BuiltGraph["graph"],
      configurable: {},
      recursionLimit: 100,
    }),
  };
}

class StepGraph {
  readonly channels = {};
  readonly #ports: StepGraphPorts;
  readonly #binding: GraphBinding;
  readonly #saver: BaseCheckpointSaver;

  constructor(ports: StepGraphPorts, binding: GraphBinding) {
    this.#ports = ports;
    this.#binding = binding;
    this.#saver = binding.saver;
  }

  async stream(input: unknown, options: RunnableConfig): Promise<AsyncIterable<unknown>> {
    const runId = String(options.configurable?.["run_id"]);
    this.#ports.ledger.drive(runId, input !== null);
    return this.#steps(input as { steps: readonly StepKind[] } | null, options, runId);
  }

  async getState(config: RunnableConfig): Promise<StateSnapshot> {
    const head = await this.#head(config);
    const next = head !== undefined && head.state.done < head.state.steps.length ? ["step"] : [];
    return {
      values: head?.state ?? {},
      next,
      tasks: [],
      config: this.#at(config, head?.id),
      metadata: {},
      createdAt: head === undefined ? undefined : new Date(this.#ports.world.now()).toISOString(),
    } as unknown as StateSnapshot;
  }

  /** As LangGraph does it: a checkpoint of the edit's own, and the run's unfinished steps are left behind. */
  async updateState(config: RunnableConfig, values: unknown): Promise<RunnableConfig> {
    const head = await this.#head(config);
    const before = head?.state ?? { runId: "", steps: [], done: 0, log: [] };
    const edited = (values as { log?: readonly string[] } | null)?.log ?? [];
    const state = { ...before, steps: before.steps.slice(0, before.done), log: [...before.log, ...edited] };
    return this.#at(config, await this.#put(config, head?.id, state, "update"));
  }

  async *getStateHistory(config: RunnableConfig): AsyncGenerator<StateSnapshot> {
    yield await this.getState(config);
  }

  async *#steps(input: { steps: readonly StepKind[] } | null, options: RunnableConfig, runId: string): AsyncGenerator {
    let head = await this.#head(options);
    if (input !== null) {
      const state = { runId, steps: input.steps, done: 0, log: [...(head?.state.log ?? []), `${runId} start`] };
      const id = await this.#put(options, head?.id, state, "input");
      head = { id, state, writes: [] };
      yield this.#chunk(options, head);
    }
    if (head === undefined) throw new Error("EmptyInputError: nothing to resume");
    while (head.state.done < head.state.steps.length) {
      if (options.signal?.aborted) throw new Error("aborted");
      head = await this.#step(options, head, runId);
      yield this.#chunk(options, head);
    }
  }

  async #step(options: RunnableConfig, head: Head, runId: string): Promise<Head> {
    const { state } = head;
    const { ledger, process } = this.#ports;
    const taskId = `${head.id}-task`;
    const place = state.done;
    if (!head.writes.some(([writer]) => writer === taskId)) {
      const kind = state.steps[place] ?? "work";
      const text = await this.#execute(kind, { runId, place, signal: options.signal });
      const message = new AIMessage({ id: `${state.runId}:${place}`, content: text });
      await this.#saver.putWrites(this.#at(options, head.id), [["messages", [message]]], taskId, "~step");
      ledger.commit(process, state.runId, place);
    }
    const next = { ...state, done: place + 1, log: [...state.log, `${state.runId} ${place}`] };
    return { id: await this.#put(options, head.id, next, "loop"), state: next, writes: [] };
  }

  async #execute(
    kind: StepKind,
    { runId, place, signal }: { runId: string; place: number; signal: AbortSignal | undefined },
  ): Promise<string> {
    const { world, ledger, process } = this.#ports;
    if (kind !== "delegate") return this.#model(kind, runId, place, signal);
    const { admission } = this.#binding;
    const slot = await admission.acquire({
      taskId: `${runId}:${place}`,
      signal: signal ?? new AbortController().signal,
    });
    if (!slot.ok) return `refused: ${slot.error}`;
    const held = ledger.hold(process, admission.snapshot());
    try {
      return await this.#model(kind, runId, place, signal);
    } finally {
      ledger.letGo(held);
      slot.value.release();
      world.note(`${process.name} released a slot`);
    }
  }

  async #model(kind: StepKind, runId: string, place: number, signal: AbortSignal | undefined): Promise<string> {
    const { world, ledger, process } = this.#ports;
    ledger.execute(process, runId, place);
    const answer = world.effect(process, "model", () => `answer ${runId} ${place}`);
    const text = await Promise.race([answer, aborted(signal)]);
    if (kind === "fail") throw new Error("the step fails");
    return text;
  }

  async #head(config: RunnableConfig): Promise<Head | undefined> {
    const tuple = await this.#saver.getTuple({ configurable: { ...config.configurable, checkpoint_ns: "" } });
    if (tuple === undefined) return undefined;
    const state = tuple.checkpoint.channel_values["state"] as StepState;
    return { id: tuple.checkpoint.id, state, writes: tuple.pendingWrites ?? [] };
  }

  async #put(
    config: RunnableConfig,
    parent: string | undefined,
    state: StepState,
    source: "input" | "loop" | "update",
  ) {
    // As LangGraph's: it follows the clock, also when that is set back behind the last checkpoint.
    const id = this.#ports.newId();
    const checkpoint: Checkpoint = {
      v: 4,
      id,
      ts: new Date(this.#ports.world.now()).toISOString(),
      channel_values: { state },
      channel_versions: { state: state.log.length },
      versions_seen: {},
    };
    await this.#saver.put(
      this.#at(config, parent),
      checkpoint,
      { source, step: state.done, parents: {} },
      {
        state: state.log.length,
      },
    );
    return id;
  }

  #at(config: RunnableConfig, checkpointId: string | undefined): RunnableConfig {
    const { thread_id } = config.configurable ?? {};
    return { configurable: { thread_id, checkpoint_ns: "", ...(checkpointId ? { checkpoint_id: checkpointId } : {}) } };
  }

  #chunk(options: RunnableConfig, { id, state }: Head): unknown {
    const next = state.done < state.steps.length ? ["step"] : [];
    return ["checkpoints", { config: this.#at(options, id), values: state, next, metadata: {}, tasks: [] }];
  }
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    if (signal === undefined) return;
    const stop = (): void => reject(new Error("aborted"));
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}
