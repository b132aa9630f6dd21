/**
 * Input of a graph that has no driver before it: under a graph loader, and in a program of the caller's.
 * Owns what a thread object does before it accepts a run (architecture section 4, Messages): messages become objects with
 * ids before they are written, because a write that got its id while being read would get another one at the next read;
 * and the run's human message is tagged with the run, so that the run's start can be told (R45). And what a thread object
 * does when a run was cancelled: its open calls are closed, here by the next turn, which is the first to know.
 */
import { type BaseMessage, isHumanMessage, isToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command, isCommand } from "@langchain/langgraph";
import { CLIENT_CHANNELS } from "../thread-state/client-channels.ts";
import { prepareMessageWrite, stripServerOwnedKeys } from "../thread-state/coerce-messages.ts";
import { copyMessage } from "../thread-state/message-forms.ts";
import type { AgentGraph } from "./agent-graph.ts";
import { closeAbandoned, type ClosedCalls } from "./cancelled-calls.ts";
import { runIdOf } from "./run-id.ts";

export interface InputPreparation {
  readonly newId: () => string;
  /** Whether input comes from clients, who could forge what Deputy writes on messages. */
  readonly isForeign: boolean;
}

type Values = Readonly<Record<string, unknown>>;
type ReadMessages = () => Promise<readonly BaseMessage[]>;

/** Changes the graph that it is given. `invoke` and `streamEvents` go through `stream`. */
export function prepareInputs(graph: AgentGraph, preparation: InputPreparation): void {
  const stream = graph.stream.bind(graph);
  const updateState = graph.updateState.bind(graph);
  const reader = (config: RunnableConfig) => () => readMessages(graph, config);
  const prepared = {
    stream: async (input: Parameters<typeof stream>[0], options: Parameters<typeof stream>[1] = {}) => {
      const runId = runIdOf(options as RunnableConfig);
      const ready = await prepareInput(input, reader(options as RunnableConfig), { ...preparation, runId });
      const close = () => closeAbandoned(graph, options as RunnableConfig, preparation.newId);
      return stream((await behindClosed(ready, close)) as typeof input, options);
    },
    updateState: async (config: RunnableConfig, values: Values | null, asNode?: string) =>
      updateState(config, await prepareValues(values, reader(config), preparation), asNode),
  };
  Object.assign(graph, prepared);
}

async function readMessages(graph: AgentGraph, config: RunnableConfig): Promise<readonly BaseMessage[]> {
  if (!graph.checkpointer) return [];
  const { values } = await graph.getState(config);
  return (values as { messages?: BaseMessage[] }).messages ?? [];
}

interface RunPreparation extends InputPreparation {
  readonly runId?: string | undefined;
}

async function prepareInput(input: unknown, read: ReadMessages, preparation: RunPreparation): Promise<unknown> {
  if (!isCommand(input)) {
    if (preparation.isForeign) refuseOwnChannels(input);
    return prepareValues(input, read, preparation);
  }
  if (input.update === undefined) return input;
  const command: ConstructorParameters<typeof Command>[0] = {
    update: await prepareValues(input.update, read, preparation),
  };
  if (input.resume !== undefined) command.resume = input.resume;
  if (input.goto !== undefined) command.goto = input.goto;
  return new Command(command);
}

function refuseOwnChannels(input: unknown): void {
  const foreign = Object.keys(input ?? {}).find((channel) => !CLIENT_CHANNELS.includes(channel));
  if (foreign === undefined) return;
  throw new TypeError(`input.${foreign} is not a channel a client may write; allowed: ${CLIENT_CHANNELS.join(", ")}`);
}

async function prepareValues<T>(values: T, read: ReadMessages, preparation: RunPreparation): Promise<T> {
  const given = (values as { messages?: unknown } | null)?.messages;
  if (given === undefined || given === null) return values;
  const messages = await prepareMessages(given, read, preparation);
  return { ...values, messages: tagRun(messages, preparation.runId) };
}

async function prepareMessages(given: unknown, read: ReadMessages, preparation: RunPreparation) {
  let write = prepareMessageWrite([], given, preparation.newId);
  // Only a removal has to know what is there.
  if (!write.ok && write.error.reason === "unknown_removal") {
    write = prepareMessageWrite(await read(), given, preparation.newId);
  }
  if (!write.ok) throw new TypeError(write.error.message);
  return preparation.isForeign ? stripServerOwnedKeys(write.value) : write.value;
}

/** A new turn ends what the last run left open; going on with that run, or answering its interrupt, does not. */
async function behindClosed(input: unknown, close: () => Promise<ClosedCalls>): Promise<unknown> {
  const given = isCommand(input) ? undefined : (input as { messages?: readonly BaseMessage[] } | null)?.messages;
  if (given === undefined) return input;
  const { messages, delegations } = await close();
  const answered = new Set(given.filter(isToolMessage).map((result) => result.tool_call_id));
  const closing = messages.filter((message) => !isToolMessage(message) || !answered.has(message.tool_call_id));
  if (closing.length === 0) return input;
  const { delegations: own = [] } = input as { delegations?: readonly unknown[] };
  return { ...(input as Values), messages: [...closing, ...given], delegations: [...own, ...delegations] };
}

/** The last one starts the run; what stands before it may be history. */
function tagRun(messages: readonly BaseMessage[], runId: string | undefined): readonly BaseMessage[] {
  const last = messages.findLastIndex((message) => isHumanMessage(message));
  if (last < 0 || runId === undefined) return messages;
  return messages.map((message, index) =>
    index === last
      ? copyMessage(message, { additional_kwargs: { ...message.additional_kwargs, run_id: runId } })
      : message,
  );
}
