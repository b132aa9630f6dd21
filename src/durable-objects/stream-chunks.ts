/**
 * A run's graph as one stream of chunks, whichever way LangGraph has to be asked for them. Owns which of LangGraph's
 * modes give the wire's, and that a client that asks for `events` gets them beside the chunks of its other modes.
 */
import type { BuiltGraph } from "../agent/graph-catalog.ts";
import type { StreamMode } from "../protocol/runs.ts";

/** One chunk as `graph.stream` gives it with several modes and `subgraphs`. */
export type StreamChunk = readonly [namespace: readonly string[], mode: string, payload: unknown];

/** What LangChain marks as nobody's business. */
const HIDDEN_TAG = "langsmith:hidden";

/** Wire mode → LangGraph's. `checkpoints` is always asked for: it names what frames with the state refer to. */
export function toLangGraphModes(modes: readonly StreamMode[]): string[] {
  return [...new Set([...modes.flatMap((mode) => LANGGRAPH_MODES[mode] ?? [mode]), "checkpoints"])];
}

const LANGGRAPH_MODES: Partial<Record<StreamMode, readonly string[]>> = {
  "messages-tuple": ["messages"],
  // The legacy form: tokens come with `messages`, whole messages with the state.
  messages: ["messages", "values"],
  events: [],
};

export interface ChunkOptions {
  readonly runId: string;
  readonly modes: readonly StreamMode[];
  readonly subgraphs: boolean;
  /** Everything else that `graph.stream` takes. */
  readonly options: Readonly<Record<string, unknown>>;
}

export async function* streamChunks(
  { graph }: BuiltGraph,
  input: unknown,
  { runId, modes, subgraphs, options }: ChunkOptions,
): AsyncGenerator<StreamChunk> {
  const asked = { ...options, subgraphs, streamMode: toLangGraphModes(modes) };
  if (!modes.includes("events")) {
    for await (const chunk of await graph.stream(input, asked)) yield toStreamChunk(chunk);
    return;
  }
  const events = graph.streamEvents(input, { ...asked, runId, version: "v2" });
  for await (const event of events as AsyncIterable<ChainEvent>) {
    if (event.tags?.includes(HIDDEN_TAG) === true) continue;
    if (event.event !== "on_chain_stream" || event.run_id !== runId) yield [[], "events", event];
    else yield toStreamChunk(event.data.chunk);
  }
}

/** What of an event of `streamEvents` (v2) is read here. */
interface ChainEvent {
  readonly event: string;
  readonly run_id: string;
  readonly tags?: readonly string[];
  readonly data: { readonly chunk?: unknown };
}

/** With `subgraphs` off a chunk has no namespace. */
function toStreamChunk(chunk: unknown): StreamChunk {
  const parts = chunk as readonly unknown[];
  return parts.length === 3 ? (parts as unknown as StreamChunk) : [[], parts[0] as string, parts[1]];
}
