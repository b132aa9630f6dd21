/**
 * LangGraph's stream chunks as frames of the LangGraph API. Pure: owns event names and data shapes
 * (langgraph-api.md B3), not ids and not storage.
 *
 * A `values` chunk is held until the `checkpoints` chunk of the same namespace follows it, because the frame stores the
 * checkpoint's id instead of the state (architecture section 5, Frames). Only an interrupt's `values` has no checkpoint.
 */
import { toWire, toWireValues } from "../agent/wire/to-wire.ts";
import type { StreamMode } from "../protocol/runs.ts";

/** One chunk as `graph.stream` gives it with several modes and `subgraphs`. */
export type StreamChunk = readonly [namespace: readonly string[], mode: string, payload: unknown];

export interface OutgoingFrame {
  readonly event: string;
  readonly data: string | { readonly checkpointId: string };
  /** For a `values` reference: the state at hand, so that live readers need not load it. */
  readonly rendered?: string;
}

/** Wire mode → LangGraph's. `checkpoints` is always asked for: it names what `values` frames refer to. */
export function toLangGraphModes(modes: readonly StreamMode[]): string[] {
  return [...new Set([...modes.map((mode) => (mode === "messages-tuple" ? "messages" : mode)), "checkpoints"])];
}

export class FrameMapper {
  readonly #held = new Map<string, unknown>();

  /** The frames a chunk makes; often none or one. */
  map([namespace, mode, payload]: StreamChunk): OutgoingFrame[] {
    const suffix = namespace.map((segment) => `|${segment}`).join("");
    switch (mode) {
      case "values":
        return this.#values(suffix, payload);
      case "checkpoints":
        return this.#checkpoint(suffix, payload);
      case "messages": {
        const [message, metadata] = payload as [unknown, unknown];
        return [{ event: `messages${suffix}`, data: JSON.stringify([toWire(message), toWire(metadata)]) }];
      }
      case "updates":
        return [{ event: `updates${suffix}`, data: JSON.stringify(toWireUpdates(payload)) }];
      default:
        return [{ event: `${mode}${suffix}`, data: JSON.stringify(toWire(payload) ?? null) }];
    }
  }

  #values(suffix: string, payload: unknown): OutgoingFrame[] {
    if (isInterrupt(payload)) return [{ event: `values${suffix}`, data: JSON.stringify(toWireInterrupts(payload)) }];
    this.#held.set(suffix, payload);
    return [];
  }

  #checkpoint(suffix: string, payload: unknown): OutgoingFrame[] {
    if (!this.#held.has(suffix)) return [];
    const values = JSON.stringify(toWireValues(this.#held.get(suffix)));
    this.#held.delete(suffix);
    // A child's checkpoints are deleted with its result, so its state is kept in the frame itself.
    if (suffix !== "") return [{ event: `values${suffix}`, data: values }];
    const { config } = payload as { config: { configurable?: { checkpoint_id?: string } } };
    const checkpointId = config.configurable?.checkpoint_id;
    if (checkpointId === undefined) return [{ event: "values", data: values }];
    return [{ event: "values", data: { checkpointId }, rendered: values }];
  }
}

interface InterruptPayload {
  readonly __interrupt__: readonly { id?: string; value?: unknown }[];
}

function isInterrupt(payload: unknown): payload is InterruptPayload {
  return payload !== null && typeof payload === "object" && "__interrupt__" in payload;
}

function toWireInterrupts(payload: InterruptPayload): Record<string, unknown> {
  return { __interrupt__: payload.__interrupt__.map(({ id, value }) => ({ id, value: toWire(value) })) };
}

function toWireUpdates(payload: unknown): Record<string, unknown> {
  if (isInterrupt(payload)) return toWireInterrupts(payload);
  return Object.fromEntries(
    Object.entries(payload as Record<string, unknown>)
      .filter(([key]) => key !== "__metadata__")
      .map(([node, update]) => [
        node,
        update !== null && typeof update === "object" && !Array.isArray(update) ? toWireValues(update) : toWire(update),
      ]),
  );
}
