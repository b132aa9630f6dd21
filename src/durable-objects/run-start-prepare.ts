/**
 * What a run brings and where it starts, checked against the thread's state as it is now: input or a command, an older
 * checkpoint, breakpoints. Owns the order of the checks and the form that is stored; nothing is written.
 */
import { BaseMessage, isAIMessage, isToolMessage } from "@langchain/core/messages";
import { nodeNames } from "../agent/graph-catalog.ts";
import { cancelCalls } from "../agent/graph/cancelled-calls.ts";
import { pendingCalls } from "../agent/graph/pending-calls.ts";
import type { ThreadState } from "../agent/thread-state/thread-state.ts";
import { toWireMessage } from "../agent/wire/to-wire.ts";
import { err, ok, type Result } from "../domain/shared/result.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { CreateRunBody } from "../protocol/runs.ts";
import type { RunCommand } from "../protocol/thread-rpc.ts";
import { prepareLeadInput } from "./run-input.ts";
import { checkpointOf } from "./run-start.ts";
import { refuseBreakpoints } from "./run-start-breakpoints.ts";
import { type CommandPlace, prepareCommand } from "./run-start-command.ts";
import { hasCommandWrites, readPendingInterrupts } from "./run-start-interrupts.ts";
import type { ThreadContext } from "./thread-context.ts";

type Refused<T> = Result<T, ApiRefusal>;
type Values = Record<string, unknown>;

export interface PreparedStart {
  readonly command: RunCommand;
  /** What the run adds to the conversation by being accepted. */
  readonly messages: readonly BaseMessage[];
}

/** Channels of LangGraph's own, which no client writes. */
const INTERNAL_CHANNEL = /^(__|branch:|join:)/;

/** The create without a checkpoint that is the head anyway: clients send the one they show along. */
export function withoutHeadCheckpoint(context: ThreadContext, command: RunCommand): RunCommand {
  const { checkpoint: _checkpoint, checkpoint_id: _id, ...body } = command.body;
  const at = checkpointOf(command.body);
  if (at !== undefined && at !== context.headCheckpointId()) return command;
  const refusal = refuseCheckpointForm(context.threadId, command.body);
  return refusal === undefined ? { ...command, body } : command;
}

/** Whether the run drops the step at the head that waits for an answer. */
export function dropsWaitingStep({ input, command, ...place }: CreateRunBody): boolean {
  if (checkpointOf({ input, command, ...place }) !== undefined) return false;
  if (input !== null && input !== undefined) return true;
  if (command === null || command === undefined || (command.resume ?? null) !== null) return false;
  return (command.update ?? command.goto ?? null) !== null;
}

/** `waits`: for its turn; then it is prepared again when it starts. */
export async function prepareStart(
  context: ThreadContext,
  command: RunCommand,
  { waits }: { readonly waits: boolean },
): Promise<Refused<PreparedStart>> {
  const { body } = command;
  const head = context.headCheckpointId();
  const place = placeOf(context, body, head);
  if (!place.ok) return place;
  const nodes = await refuseBreakpoints(context.deps.catalog, command);
  if (nodes !== undefined) return err(nodes);
  const { input } = body;
  if (body.command !== null && body.command !== undefined) {
    if (input !== null && input !== undefined)
      return invalid("command: a run takes input or a command, not both", ["command"]);
    if (head === null && !waits) return invalid("command: the thread has no state to apply it to", ["command"]);
    return acceptCommand(context, command, { waits, fork: place.value });
  }
  if (input === null || input === undefined) {
    if (head === null && !waits) return invalid("input: required on a thread without state", ["input"]);
    return ok({ command, messages: [] });
  }
  if (command.graph_id !== LEAD_GRAPH_ID) return ok({ command, messages: [] });
  return acceptInput(context, command, { input, waits, fork: place.value });
}

/** The older checkpoint that the run starts from; `undefined` for the head. */
function placeOf(context: ThreadContext, body: CreateRunBody, head: string | null): Refused<string | undefined> {
  const refusal = refuseCheckpointForm(context.threadId, body);
  if (refusal !== undefined) return err(refusal);
  const at = checkpointOf(body);
  if (at === undefined || at === head) return ok(undefined);
  if (context.saver.has(context.threadId, "", at)) return ok(at);
  return err({ code: "not_found", message: `no checkpoint '${at}' on this thread` });
}

/** Of what a create says of its checkpoint, before anybody looks for it. */
export function refuseCheckpointForm(threadId: string, body: CreateRunBody): ApiRefusal | undefined {
  const { checkpoint, checkpoint_id: id } = body;
  const path = { path: ["checkpoint"] };
  if (id === "" || checkpoint?.checkpoint_id === "") {
    return {
      code: "invalid_request",
      message: "checkpoint_id: must not be empty",
      details: { path: ["checkpoint_id"] },
    };
  }
  if (checkpoint === null || checkpoint === undefined) return undefined;
  const { thread_id, checkpoint_ns, checkpoint_map, checkpoint_id } = checkpoint;
  if (thread_id && thread_id !== threadId) {
    return { code: "not_found", message: "checkpoint: it is not of this thread", details: path };
  }
  if (checkpoint_ns) return unsupported("checkpoint.checkpoint_ns", "a run starts from the thread's own checkpoints");
  if (checkpoint_map && Object.keys(checkpoint_map).some((namespace) => namespace !== "")) {
    return unsupported("checkpoint.checkpoint_map", "a run starts from the thread's own checkpoints");
  }
  if (id && checkpoint_id && id !== checkpoint_id) {
    return { code: "invalid_request", message: "checkpoint and checkpoint_id name two checkpoints", details: path };
  }
  return undefined;
}

async function describeGraph(context: ThreadContext, command: RunCommand): Promise<CommandPlace["graph"]> {
  try {
    const built = await context.graphs.forCreate(command);
    const channels = Object.keys(built.graph.channels).filter((channel) => !INTERNAL_CHANNEL.test(channel));
    return { nodes: nodeNames(built.graph), channels };
  } catch (fault) {
    context.onFault(fault);
    return undefined;
  }
}

interface Placed {
  readonly fork: string | undefined;
  readonly waits: boolean;
}

async function acceptCommand(
  context: ThreadContext,
  command: RunCommand,
  { waits, fork }: Placed,
): Promise<Refused<PreparedStart>> {
  const given = command.body.command ?? {};
  const answers = (given.resume ?? null) !== null;
  if (answers && fork !== undefined) {
    const hint = "run from it with input null: it asks again, and the new question can be answered";
    return err(unsupported("command.resume", `a question of an older checkpoint takes no answer; ${hint}`));
  }
  if (answers && command.body.strict_resume === false)
    return err(unsupported("strict_resume", "an answer that fits no question is always refused"));
  const changes = (given.update ?? given.goto ?? null) !== null;
  if (answers && changes && (await hasCommandWrites(context))) {
    const hint = "an earlier answer at this checkpoint brought one, which is not applied yet";
    return err(unsupported("command.update", `with an answer, update and goto are taken once a checkpoint; ${hint}`));
  }
  const prepared = await prepareCommand(given, {
    graphId: command.graph_id,
    ...(changes && command.graph_id !== LEAD_GRAPH_ID ? { graph: await describeGraph(context, command) } : {}),
    ...(answers && !waits ? { pending: await readPendingInterrupts(context) } : {}),
    stateMessages: async () => (await leadStateAt(context, fork)).messages ?? [],
    newId: () => context.newId(),
  });
  if (!prepared.ok) return prepared;
  const body = { ...command.body, command: prepared.value.command };
  return ok({ command: { ...command, body }, messages: prepared.value.messages });
}

/** Only a removal depends on the state, so it is loaded only for an input that an empty state refuses, and for a fork. */
async function acceptInput(
  context: ThreadContext,
  command: RunCommand,
  { input, waits, fork }: Placed & { readonly input: Values },
): Promise<Refused<PreparedStart>> {
  const newId = () => context.newId();
  const fresh = prepareLeadInput([], input, newId);
  const prepared =
    fresh.ok || context.headCheckpointId() === null
      ? fresh
      : prepareLeadInput((await leadStateAt(context, fork)).messages ?? [], input, newId);
  if (!prepared.ok) return prepared;
  const { values, messages } = prepared.value;
  // What a waiting run stores is what it was given: it is prepared again.
  const closing = fork === undefined || waits ? NOTHING_OPEN : await closeOpenCalls(context, fork);
  const all = [...closing.messages, ...messages];
  const stored = closing.messages.length === 0 ? values : { ...values, ...closing, messages: all.map(toWireMessage) };
  return ok({ command: { ...command, body: { ...command.body, input: stored } }, messages: all });
}

interface Closing {
  readonly messages: readonly BaseMessage[];
  readonly delegations?: ThreadState["delegations"];
}

const NOTHING_OPEN: Closing = { messages: [] };

/**
 * A branch that leaves the thread between a call and its result: the call has the result that was committed, or one that
 * says it was not waited for, so that the branch meets no open call (P5).
 */
async function closeOpenCalls(context: ThreadContext, checkpointId: string): Promise<Closing> {
  const at = { thread_id: context.threadId, checkpoint_ns: "", checkpoint_id: checkpointId };
  const state = await leadStateAt(context, checkpointId);
  const open = pendingCalls(state.messages ?? []);
  if (open.length === 0) return NOTHING_OPEN;
  const writes = (await context.saver.getTuple({ configurable: at }))?.pendingWrites ?? [];
  const committed = writes
    .filter(([, channel]) => channel === "messages")
    .flatMap(([, , value]) => (Array.isArray(value) ? (value as unknown[]) : [value]))
    .filter((message) => BaseMessage.isInstance(message))
    .filter((message) => isAIMessage(message) || isToolMessage(message));
  const answered = new Set(committed.filter((each) => isToolMessage(each)).map((result) => result.tool_call_id));
  const unanswered = open.filter(({ id }) => !answered.has(id));
  const cancelled = cancelCalls(unanswered, state.delegations ?? [], () => context.newId());
  const settled = writes
    .filter(([, channel]) => channel === "delegations")
    .flatMap(([, , value]) => value as NonNullable<ThreadState["delegations"]>);
  const delegations = [...settled, ...cancelled.delegations];
  return {
    messages: [...committed, ...cancelled.messages],
    ...(delegations.length === 0 ? {} : { delegations }),
  };
}

async function leadStateAt(context: ThreadContext, checkpointId: string | undefined): Promise<Partial<ThreadState>> {
  const { graph, configurable } = await context.graphs.forState();
  const at = checkpointId === undefined ? {} : { checkpoint_id: checkpointId };
  return (await graph.getState({ configurable: { ...configurable, ...at } })).values as Partial<ThreadState>;
}

function invalid(message: string, path: readonly string[]): Refused<never> {
  return err({ code: "invalid_request", message, details: { path } });
}

function unsupported(field: string, why: string): ApiRefusal {
  return { code: "unsupported_option", message: `${field} is not supported here: ${why}.`, details: { field } };
}
