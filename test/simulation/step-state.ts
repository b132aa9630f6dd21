/**
 * What the simulated graph keeps in a thread's checkpoints, and how it is read and written there: the root's under the
 * empty namespace, a child's under its own.
 */
import type { BaseCheckpointSaver, Checkpoint } from "@langchain/langgraph";
import type { CheckpointPendingWrite } from "@langchain/langgraph-checkpoint";
import type { World } from "./world.ts";

/**
 * `delegate` is one child of two steps, `fan_out` three of one step beside each other; `ask` waits for a client's answer;
 * `fail` throws.
 */
export type StepKind = "work" | "delegate" | "fan_out" | "ask" | "fail";

export interface StepState {
  /** The run that brought the steps; another one may go on with them. */
  readonly runId: string;
  readonly steps: readonly StepKind[];
  readonly done: number;
  /** What each run left, in order. */
  readonly log: readonly string[];
  /** What commands wrote. */
  readonly edits: readonly string[];
}

export interface ChildState {
  readonly done: number;
}

export const NOTHING: StepState = { runId: "", steps: [], done: 0, log: [], edits: [] };

/** The children of a step: how many, and how many steps each has. */
export const CHILDREN: Partial<Record<StepKind, { readonly count: number; readonly steps: number }>> = {
  delegate: { count: 1, steps: 2 },
  fan_out: { count: 3, steps: 1 },
};

/** The tasks of a step, each of which commits by itself. */
export function tasksOf(kind: StepKind, place: number): readonly string[] {
  const children = CHILDREN[kind];
  return children === undefined
    ? [String(place)]
    : Array.from({ length: children.count }, (_, child) => `${place}.${child}`);
}

export interface Head<S> {
  readonly id: string;
  readonly state: S;
  readonly writes: readonly CheckpointPendingWrite[];
}

export interface CheckpointPorts {
  readonly world: World;
  readonly newId: (notBefore?: number) => string;
  readonly saver: BaseCheckpointSaver;
}

export interface CheckpointPlaceName {
  readonly thread_id: string;
  readonly checkpoint_ns: string;
}

/** The checkpoints of one namespace. */
export class StepCheckpoints<S extends { readonly done: number }> {
  readonly #ports: CheckpointPorts;
  readonly #place: CheckpointPlaceName;

  constructor(ports: CheckpointPorts, place: CheckpointPlaceName) {
    this.#ports = ports;
    this.#place = place;
  }

  at(checkpointId?: string): { configurable: CheckpointPlaceName & { checkpoint_id?: string } } {
    return { configurable: { ...this.#place, ...(checkpointId === undefined ? {} : { checkpoint_id: checkpointId }) } };
  }

  async head(checkpointId?: string): Promise<Head<S> | undefined> {
    const tuple = await this.#ports.saver.getTuple(this.at(checkpointId));
    if (tuple === undefined) return undefined;
    const state = tuple.checkpoint.channel_values["state"] as S;
    return { id: tuple.checkpoint.id, state, writes: tuple.pendingWrites ?? [] };
  }

  async putWrites(head: Head<S>, writes: [channel: string, value: unknown][], taskId: string): Promise<void> {
    await this.#ports.saver.putWrites(this.at(head.id), writes, taskId, "~step");
  }

  async put(parent: Head<S> | undefined, state: S, source: "input" | "loop" | "update"): Promise<Head<S>> {
    const { world, newId, saver } = this.#ports;
    // As LangGraph's: it follows the clock, also when that is set back behind the last checkpoint.
    const id = newId();
    const checkpoint: Checkpoint = {
      v: 4,
      id,
      ts: new Date(world.now()).toISOString(),
      channel_values: { state },
      channel_versions: { state: id },
      versions_seen: {},
    };
    await saver.put(this.at(parent?.id), checkpoint, { source, step: state.done, parents: {} }, { state: id });
    return { id, state, writes: [] };
  }
}
