/**
 * The writes of one node execution, gathered while its hooks run.
 * Owns the running view (each hook sees what earlier ones wrote) and the form in which a node hands writes to LangGraph.
 * Invariants: every message passed `prepareMessageWrite`; folding the handed-out writes gives the running view.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { InvariantError } from "../../domain/shared/assert.ts";
import { applyStateUpdate, isReducedChannel } from "../thread-state/channels.ts";
import { prepareMessageWrite } from "../thread-state/coerce-messages.ts";
import { isRemoval } from "../thread-state/message-forms.ts";
import type { ThreadState, ThreadStateUpdate } from "../thread-state/thread-state.ts";

/** LangGraph takes one value per channel in a plain update; a second write of a channel needs a further Command. */
export type NodeReturn = ThreadStateUpdate | Command[];

function mayJoin(write: readonly BaseMessage[]): boolean {
  return !write.some(isRemoval);
}

export class StepWrites {
  #state: ThreadState;
  #batches: ThreadStateUpdate[] = [{}];
  readonly #newId: () => string;

  constructor(state: ThreadState, newId: () => string) {
    this.#state = { ...state, messages: state.messages ?? [] };
    this.#newId = newId;
  }

  state(): ThreadState {
    return this.#state;
  }

  /** Gives ids and checks removals; an impossible write is a fault of the hook or tool that made it. */
  prepare(messages: readonly BaseMessage[]): BaseMessage[] {
    const prepared = prepareMessageWrite(this.#state.messages, messages, this.#newId);
    if (!prepared.ok) throw new InvariantError(prepared.error.message);
    return prepared.value;
  }

  add(update: ThreadStateUpdate | undefined): void {
    if (update === undefined) return;
    const { messages, ...channels } = update;
    const write = messages === undefined ? {} : { messages: this.prepare(messages ?? []) };
    const prepared: ThreadStateUpdate = { ...channels, ...write };
    this.#state = applyStateUpdate(this.#state, prepared);
    for (const [channel, value] of Object.entries(prepared)) this.#put(channel as keyof ThreadState, value);
  }

  toNodeReturn(): NodeReturn {
    const [first = {}, ...more] = this.#batches;
    return more.length === 0 ? first : this.#batches.map((update) => new Command({ update }));
  }

  #put(channel: keyof ThreadState, value: unknown): void {
    const holding = this.#batches.findLastIndex((batch) => Object.hasOwn(batch, channel));
    const held = holding < 0 ? undefined : this.#batches[holding];
    if (held === undefined) this.#set(0, channel, value);
    else if (channel === "messages") this.#putMessages(holding, held.messages ?? [], value as BaseMessage[]);
    else if (isReducedChannel(channel)) this.#set(holding + 1, channel, value);
    else this.#set(holding, channel, value);
  }

  /** Two lists of plain messages fold alike joined or apart, and one write per step keeps the `updates` stream simple. */
  #putMessages(holding: number, held: BaseMessage[], write: BaseMessage[]): void {
    if (mayJoin(held) && mayJoin(write)) this.#set(holding, "messages", [...held, ...write]);
    else this.#set(holding + 1, "messages", write);
  }

  #set(batch: number, channel: keyof ThreadState, value: unknown): void {
    const held = this.#batches[batch];
    if (held === undefined) this.#batches.push({ [channel]: value });
    else (held as Record<string, unknown>)[channel] = value;
  }
}
