/**
 * Tasks and checkpoints of a stream as the LangGraph API writes them (`tasks`, `checkpoints`, `debug`). Owns the shapes.
 * LangGraph's own carry the run's config with every internal handle in it: what a client gets of a config is where it
 * points.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { toWire, toWireState } from "../agent/wire/to-wire.ts";

export interface CheckpointPayload {
  readonly config: RunnableConfig<{ checkpoint_id?: string }>;
  readonly parentConfig?: RunnableConfig;
  readonly values: unknown;
  readonly metadata?: unknown;
  readonly next: readonly string[];
  readonly tasks: readonly Record<string, unknown>[];
}

export function toWireCheckpoint(payload: CheckpointPayload): Record<string, unknown> {
  const { config, parentConfig, values, metadata, next, tasks } = payload;
  return {
    values: toWireState(values),
    metadata: toWire(metadata ?? {}),
    next,
    config: toWireConfig(config),
    checkpoint: toWirePlace(config),
    parent_config: parentConfig === undefined ? null : toWireConfig(parentConfig),
    parent_checkpoint: parentConfig === undefined ? null : toWirePlace(parentConfig),
    tasks: tasks.map(({ state, ...task }) => ({
      ...toWireTask(task),
      checkpoint: isConfig(state) ? toWirePlace(state) : null,
    })),
  };
}

/** A task that starts has its `input`, one that ended its `result` and `error`. */
export function toWireTask(payload: unknown): Record<string, unknown> {
  const { input, result, interrupts, error, ...task } = payload as Record<string, unknown>;
  return {
    ...(toWire(task) as object),
    ...(input === undefined ? {} : { input: toWireState(input) }),
    ...(result === undefined ? {} : { result: toWireState(result) }),
    ...(error === undefined ? {} : { error: toWireError(error) }),
    interrupts: toWire(interrupts ?? []),
  };
}

export function toWireDebug(payload: unknown): Record<string, unknown> {
  const { type, payload: inner, ...told } = payload as { type: string; payload: unknown };
  const shown = type === "checkpoint" ? toWireCheckpoint(inner as CheckpointPayload) : toWireTask(inner);
  return { ...told, type, payload: shown };
}

function isConfig(value: unknown): value is RunnableConfig {
  return value !== null && typeof value === "object" && "configurable" in value;
}

const PLACE_KEYS = ["thread_id", "checkpoint_ns", "checkpoint_id"] as const;

function toWirePlace({ configurable = {} }: RunnableConfig): Record<string, unknown> {
  return Object.fromEntries(
    PLACE_KEYS.map((key) => [
      key,
      (configurable as Record<string, unknown>)[key] ?? (key === "checkpoint_ns" ? "" : null),
    ]),
  );
}

function toWireConfig(config: RunnableConfig): Record<string, unknown> {
  return { configurable: toWirePlace(config) };
}

/** Its name and message, never a stack. */
function toWireError(error: unknown): unknown {
  if (error === null || typeof error !== "object") return error;
  const { name, message } = error as { name?: unknown; message?: unknown };
  return typeof message === "string" ? `${typeof name === "string" ? name : "Error"}: ${message}` : toWire(error);
}
