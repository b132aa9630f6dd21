/**
 * Ids of messages in graphs that are not ours. LangGraph's own message reducer gives an id to a message without one each
 * time it merges it: a message that is stored without one has another id for every reader, and another one after a crash.
 * So messages get their ids before they are stored: those of an input from the run, those of nodes at their first write.
 * Channels with reducers of their own are left alone.
 */
import { BaseMessage } from "@langchain/core/messages";
import {
  type BaseCheckpointSaver,
  Command,
  isCommand,
  messagesDeltaReducer,
  messagesStateReducer,
} from "@langchain/langgraph";
import type { RunnableGraph } from "../graph-catalog.ts";

const MESSAGE_REDUCERS: readonly unknown[] = [messagesStateReducer, messagesDeltaReducer];

/** Names of the channels that merge as LangGraph's messages do, in the graph and in the graphs it is made of. */
export async function messageChannelsOf(graph: RunnableGraph): Promise<ReadonlySet<string>> {
  const names = new Set(namesIn(graph.channels));
  for await (const [, subgraph] of graph.getSubgraphsAsync?.(undefined, true) ?? []) {
    for (const name of namesIn((subgraph as RunnableGraph).channels)) names.add(name);
  }
  return names;
}

function namesIn(channels: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(channels).flatMap(([name, channel]) => (isMessageChannel(channel) ? [name] : []));
}

export function isMessageChannel(channel: unknown): boolean {
  const { operator, reducer } = (channel ?? {}) as { operator?: unknown; reducer?: unknown };
  return MESSAGE_REDUCERS.includes(operator) || MESSAGE_REDUCERS.includes(reducer);
}

/** The input again with ids that are the same however often the run starts; JSON data, as a client gave it. */
export function withInputIds(input: unknown, channels: ReadonlySet<string>, runId: string): unknown {
  if (isCommand(input)) return withUpdateIds(input, channels, runId);
  if (typeof input !== "object" || input === null || Array.isArray(input)) return input;
  let count = 0;
  const identified = (given: unknown): unknown => {
    count += 1;
    const id = `${runId}-${count}`;
    if (typeof given === "string") return { role: "user", content: given, id };
    return isDictWithoutId(given) ? { ...given, id } : given;
  };
  const entries = Object.entries(input).map(([channel, value]) => {
    if (!channels.has(channel)) return [channel, value];
    return [channel, Array.isArray(value) ? value.map(identified) : identified(value)];
  });
  return Object.fromEntries(entries) as unknown;
}

/** A command stays one: as plain values it would start the graph anew, and its answer would be lost. */
function withUpdateIds(command: Command, channels: ReadonlySet<string>, runId: string): Command {
  if (command.update === undefined) return command;
  const { graph, resume, goto } = command;
  const update = withInputIds(command.update, channels, runId) as NonNullable<typeof command.update>;
  return new Command({
    update,
    ...(graph === undefined ? {} : { graph }),
    ...(resume === undefined ? {} : { resume }),
    ...(goto === undefined ? {} : { goto }),
  });
}

/** What LangChain takes for a message: `type` or `role`, and its content. */
function isDictWithoutId(message: unknown): message is Record<string, unknown> {
  if (typeof message !== "object" || message === null || BaseMessage.isInstance(message)) return false;
  const { id, role, type, content } = message as Record<string, unknown>;
  return (id === undefined || id === null) && typeof (role ?? type) === "string" && content !== undefined;
}

/** The saver, through which messages that nodes write get an id before they are stored. */
export function identifyingSaver(
  saver: BaseCheckpointSaver,
  channels: ReadonlySet<string>,
  newId: () => string,
): BaseCheckpointSaver {
  return new Proxy(saver, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown;
      if (typeof value !== "function") return value;
      if (name !== "putWrites") return value.bind(target) as unknown;
      return (...args: Parameters<BaseCheckpointSaver["putWrites"]>) => {
        for (const [channel, written] of args[1]) if (channels.has(channel)) identify(written, newId);
        return target.putWrites(...args);
      };
    },
  });
}

/** In place: the run goes on with the very objects that are stored. */
function identify(written: unknown, newId: () => string): void {
  for (const each of Array.isArray(written) ? (written as unknown[]) : [written]) {
    if (isDictWithoutId(each)) each["id"] = newId();
    if (!BaseMessage.isInstance(each) || (each.id !== undefined && each.id !== null)) continue;
    each.id = newId();
    each.lc_kwargs["id"] = each.id;
  }
}
