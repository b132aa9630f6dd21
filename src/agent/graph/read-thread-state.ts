/**
 * Reads ThreadState from inside a node that was sent only a call.
 * Owns the one use of LangGraph's private read key; `read-thread-state.test.ts` pins it. Invariant: the state read is
 * the one the step started from; what sibling tasks write in the same step is not in it.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { InvariantError } from "../../domain/shared/assert.ts";
import { THREAD_STATE_CHANNELS } from "../thread-state/channels.ts";
import type { ThreadState } from "../thread-state/thread-state.ts";

const PREGEL_READ_KEY = "__pregel_read";

type PregelRead = (channels: readonly string[], fresh: boolean) => Partial<ThreadState>;

/** `undefined` outside a LangGraph task. */
export function findThreadState(config: RunnableConfig): ThreadState | undefined {
  const read: unknown = config.configurable?.[PREGEL_READ_KEY];
  if (typeof read !== "function") return undefined;
  const values = (read as PregelRead)(THREAD_STATE_CHANNELS, false);
  return { ...values, messages: values.messages ?? [] };
}

/** Throws `InvariantError` outside a LangGraph task. */
export function readThreadState(config: RunnableConfig): ThreadState {
  const state = findThreadState(config);
  if (state === undefined) throw new InvariantError(`not inside a LangGraph task: no ${PREGEL_READ_KEY} in config`);
  return state;
}
