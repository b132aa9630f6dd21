/**
 * LangGraph's stream chunks as frames of the LangGraph API. Pure: owns event names and data shapes
 * (langgraph-api.md B3), not ids and not storage.
 *
 * - A mode that the run did not ask for makes no frame, though LangGraph was asked for more (`stream-chunks.ts`).
 * - A `values` chunk is held until the `checkpoints` chunk of the same namespace follows it, because the frame names the
 *   checkpoint instead of holding the state (architecture section 5, Frames). Only an interrupt's `values` has none.
 */
import { toWire, toWireState } from "../agent/wire/to-wire.ts";
import type { FrameData } from "../platform/durable-storage/frame-log.ts";
import type { StreamMode } from "../protocol/runs.ts";
import { type CheckpointPayload, toWireCheckpoint, toWireDebug, toWireTask } from "./stream-debug.ts";
import { LegacyMessages } from "./legacy-messages.ts";
import { type KnownState, knownState, toFrameData } from "./state-parts.ts";
import type { StreamChunk } from "./stream-chunks.ts";

export interface OutgoingFrame {
  readonly event: string;
  /** Where it depends on the id that the frame gets: made from that. */
  readonly data: FrameData | ((id: number) => FrameData);
  /** The state at the checkpoint that `data` names, so that live readers need not load it. */
  readonly rendered?: string;
}

/** Modes whose frames repeat the state. */
const REPEATS_STATE: readonly StreamMode[] = ["checkpoints", "debug", "tasks", "events"];

export class FrameMapper {
  readonly #modes: ReadonlySet<string>;
  readonly #repeatsState: boolean;
  readonly #legacy: LegacyMessages | undefined;
  readonly #held = new Map<string, unknown>();
  /** The newest state of the run's own graph. A child's checkpoints go with its result, so its state is named nowhere. */
  #known: KnownState | undefined;

  /** `seen`: messages that are older than the run. */
  constructor(modes: readonly StreamMode[], seen: ReadonlySet<string> = new Set()) {
    this.#modes = new Set(modes.map((mode) => (mode === "messages-tuple" ? "tokens" : mode)));
    this.#repeatsState = REPEATS_STATE.some((mode) => this.#modes.has(mode));
    this.#legacy = this.#modes.has("messages") ? new LegacyMessages(seen) : undefined;
  }

  /** The frames a chunk makes; often none or one. */
  map([namespace, mode, payload]: StreamChunk): OutgoingFrame[] {
    const suffix = namespace.map((segment) => `|${segment}`).join("");
    switch (mode) {
      case "values":
        return this.#values(suffix, payload);
      case "checkpoints":
        return this.#checkpoint(suffix, payload as CheckpointPayload);
      case "messages":
        return this.#message(suffix, payload as [unknown, unknown]);
      case "updates":
        return this.#asked(mode, suffix, () => JSON.stringify(toWireUpdates(payload)));
      case "tasks":
        return this.#asked(mode, suffix, () => this.#data(suffix, toWireTask(payload)));
      case "debug":
        return this.#asked(mode, suffix, () => this.#data(suffix, toWireDebug(payload)));
      case "events":
        return this.#asked(mode, suffix, () => this.#event(payload));
      default:
        return this.#asked(mode, suffix, () => JSON.stringify(toWire(payload) ?? null));
    }
  }

  #asked(mode: string, suffix: string, data: () => FrameData): OutgoingFrame[] {
    return this.#modes.has(mode) ? [{ event: `${mode}${suffix}`, data: data() }] : [];
  }

  #data(suffix: string, value: unknown): FrameData {
    return toFrameData(value, suffix === "" ? this.#known : undefined);
  }

  #message(suffix: string, [message, metadata]: [unknown, unknown]): OutgoingFrame[] {
    const tuple = { event: `messages${suffix}`, data: () => JSON.stringify([toWire(message), toWire(metadata)]) };
    return [
      ...(this.#modes.has("tokens") ? [{ ...tuple, data: tuple.data() }] : []),
      ...(this.#legacy?.token(suffix, message, metadata) ?? []),
    ];
  }

  #values(suffix: string, payload: unknown): OutgoingFrame[] {
    if (isInterrupt(payload)) {
      return this.#asked("values", suffix, () => JSON.stringify(toWireInterrupts(payload)));
    }
    this.#held.set(suffix, payload);
    return [];
  }

  #checkpoint(suffix: string, payload: CheckpointPayload): OutgoingFrame[] {
    const isHeld = this.#held.has(suffix);
    const held = this.#held.get(suffix);
    this.#held.delete(suffix);
    if (suffix === "" && this.#repeatsState) this.#know(payload);
    return [
      ...(isHeld && this.#modes.has("values") ? [this.#valuesFrame(suffix, held, payload)] : []),
      ...(isHeld ? (this.#legacy?.state(suffix, held) ?? []) : []),
      ...this.#asked("checkpoints", suffix, () => this.#data(suffix, toWireCheckpoint(payload))).map((frame) =>
        this.#known === undefined ? frame : { ...frame, rendered: this.#known.whole },
      ),
    ];
  }

  #know({ config, values }: CheckpointPayload): void {
    const checkpointId = config.configurable?.checkpoint_id;
    const state = toWireState(values);
    this.#known = checkpointId === undefined || !isRecord(state) ? undefined : knownState(checkpointId, state);
  }

  #valuesFrame(suffix: string, held: unknown, { config, values }: CheckpointPayload): OutgoingFrame {
    const event = `values${suffix}`;
    const state = toWireState(held);
    const checkpointId = config.configurable?.checkpoint_id;
    if (suffix !== "" || checkpointId === undefined) return { event, data: JSON.stringify(state) };
    const whole = toWireState(values);
    // A graph whose output is less than its state: a replay must not show what its client never saw.
    if (isRecord(state) && isRecord(whole) && Object.keys(state).length !== Object.keys(whole).length) {
      const known = knownState(checkpointId, whole);
      return { event, data: toFrameData(state, known), rendered: known.whole };
    }
    return { event, data: { checkpointId }, rendered: JSON.stringify(state) };
  }

  /** A chain may hand around what is no JSON: then the event says who did what, without it. */
  #event(payload: unknown): FrameData {
    const { data, ...told } = payload as Record<string, unknown> & { data?: Record<string, unknown> };
    try {
      const wired = Object.fromEntries(Object.entries(data ?? {}).map(([key, value]) => [key, toWireState(value)]));
      return this.#data("", { ...(toWire(told) as object), data: wired });
    } catch {
      const { event, name, run_id } = told;
      return JSON.stringify({ event, name, run_id, tags: [], metadata: {}, parent_ids: [], data: {} });
    }
  }
}

interface InterruptPayload {
  readonly __interrupt__: readonly { id?: string; value?: unknown }[];
}

function isInterrupt(payload: unknown): payload is InterruptPayload {
  return payload !== null && typeof payload === "object" && "__interrupt__" in payload;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function toWireInterrupts(payload: InterruptPayload): Record<string, unknown> {
  return { __interrupt__: payload.__interrupt__.map(({ id, value }) => ({ id, value: toWire(value) })) };
}

function toWireUpdates(payload: unknown): Record<string, unknown> {
  if (isInterrupt(payload)) return toWireInterrupts(payload);
  return Object.fromEntries(
    Object.entries(payload as Record<string, unknown>)
      .filter(([key]) => key !== "__metadata__")
      .map(([node, update]) => [node, toWireState(update)]),
  );
}
