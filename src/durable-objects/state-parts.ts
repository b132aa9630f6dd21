/**
 * A document that holds the thread's state, as text around it: what a checkpoint has is named, not stored again
 * (architecture section 5, Frames). A task's input, a checkpoint's frame and a chain's event each repeat the whole state.
 *
 * Invariant: rendering gives the text that `JSON.stringify` would have given. A place is left out only where its text
 * equals the checkpoint's, so a mistake about what a graph hands around costs bytes, never a wrong frame.
 */
import type { FramePart, StateData } from "../platform/durable-storage/frame-log.ts";

/** Below this a name and a look-up cost more than the text. */
const WORTH_NAMING_CHARS = 200;

/** How deep the state is looked for: an event has it three objects down. */
const DEPTH_MAX = 5;

/** A checkpoint's state, as text. */
export interface KnownState {
  readonly checkpointId: string;
  readonly whole: string;
  readonly channels: ReadonlyMap<string, string>;
}

export function knownState(checkpointId: string, values: Readonly<Record<string, unknown>>): KnownState {
  const channels = new Map<string, string>();
  for (const [channel, value] of Object.entries(values)) {
    const text = JSON.stringify(value) as string | undefined;
    if (text !== undefined) channels.set(channel, text);
  }
  const whole = `{${[...channels].map(([channel, text]) => `${JSON.stringify(channel)}:${text}`).join(",")}}`;
  return { checkpointId, whole, channels };
}

/** `value` is plain JSON data. Without a known state, and where nothing of it is in the value, its text. */
export function toFrameData(value: unknown, known: KnownState | undefined): string | StateData {
  if (known === undefined) return JSON.stringify(value);
  const parts: FramePart[] = [];
  write(value, parts, { known, depth: 0 });
  if (parts.length === 1 && typeof parts[0] === "string") return parts[0];
  const { checkpointId } = known;
  return parts.length === 1 && parts[0]?.length === 0 ? { checkpointId } : { checkpointId, parts };
}

interface Place {
  readonly known: KnownState;
  readonly depth: number;
  /** The property the value stands under. */
  readonly key?: string;
}

function write(value: unknown, parts: FramePart[], { known, depth, key }: Place): void {
  if (!isRecord(value) || depth >= DEPTH_MAX) {
    const text = JSON.stringify(value);
    if (key !== undefined && text.length >= WORTH_NAMING_CHARS && known.channels.get(key) === text) parts.push([key]);
    else say(parts, text);
    return;
  }
  const text = JSON.stringify(value);
  if (text.length < WORTH_NAMING_CHARS) return say(parts, text);
  if (text === known.whole) return void parts.push([]);
  if (key !== undefined && known.channels.get(key) === text) return void parts.push([key]);
  let separator = "{";
  for (const [name, inner] of Object.entries(value)) {
    if (JSON.stringify(inner) === undefined) continue;
    say(parts, `${separator}${JSON.stringify(name)}:`);
    write(inner, parts, { known, depth: depth + 1, key: name });
    separator = ",";
  }
  say(parts, separator === "{" ? "{}" : "}");
}

function say(parts: FramePart[], text: string): void {
  const last = parts.at(-1);
  if (typeof last === "string") parts[parts.length - 1] = last + text;
  else parts.push(text);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
  return typeof (value as { toJSON?: unknown }).toJSON !== "function";
}

/** The text again; `whole` is the state at its checkpoint. */
export function renderParts(parts: readonly FramePart[], whole: string): string {
  let channels: Record<string, unknown> | undefined;
  return parts
    .map((part) => {
      if (typeof part === "string") return part;
      const [channel] = part;
      if (channel === undefined) return whole;
      channels ??= JSON.parse(whole) as Record<string, unknown>;
      return JSON.stringify(channels[channel]) ?? "null";
    })
    .join("");
}
