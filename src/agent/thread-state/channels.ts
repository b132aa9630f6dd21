/**
 * ThreadState as LangGraph channels, and the same merge rules as a plain function.
 * Owns the set of channels (readers look for these names) and which reducer each has.
 * Invariant: `applyStateUpdate` gives what the channels give, so a hook inside a node sees what the next step will see.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { Annotation, BinaryOperatorAggregate, DeltaChannel } from "@langchain/langgraph";
import { mergeDelegations } from "./merge-delegations.ts";
import { mergeMessageWrites } from "./merge-message-writes.ts";
import {
  mergeArtifacts,
  mergeGoal,
  mergePromoted,
  mergeSandbox,
  mergeSkillContext,
  mergeTodos,
  mergeViewedImages,
} from "./reducers.ts";
import type {
  DelegationEntry,
  Goal,
  PromotedTools,
  RunProgress,
  SandboxState,
  SkillContextEntry,
  ThreadData,
  ThreadState,
  ThreadStateUpdate,
  Todo,
  ViewedImage,
} from "./thread-state.ts";

/**
 * Writes to `messages` between two whole snapshots of it. A snapshot costs the whole history, a read replays at most
 * this many writes: at 100 a thread of 60 turns stores at most one snapshot.
 */
const MESSAGE_WRITES_PER_SNAPSHOT = 100;

const REDUCERS = {
  sandbox: mergeSandbox,
  artifacts: mergeArtifacts,
  todos: mergeTodos,
  goal: mergeGoal,
  viewed_images: mergeViewedImages,
  promoted: mergePromoted,
  delegations: mergeDelegations,
  skill_context: mergeSkillContext,
} as const;

export const LAST_VALUE_CHANNELS = [
  "thread_data",
  "title",
  "uploaded_files",
  "summary_text",
  "background_tasks",
  "run_progress",
] as const satisfies readonly (keyof ThreadState)[];

/**
 * What a tool's result may write beside its message. Calls run in parallel and LangGraph fails the whole step when two
 * of them write one last-value channel (or name two sandboxes), so these are the channels that merge.
 */
export const TOOL_WRITABLE_CHANNELS = [
  "artifacts",
  "todos",
  "goal",
  "viewed_images",
  "promoted",
  "delegations",
  "skill_context",
] as const satisfies readonly (keyof ThreadState)[];

/** A channel with an initial value runs its reducer on the first write too (without one LangGraph stores it as it is). */
function merged<T>(reducer: (current: T, incoming: T) => T, initial: T) {
  return () => new BinaryOperatorAggregate<T>(reducer, () => initial);
}

export function threadStateChannels() {
  return {
    messages: () =>
      new DeltaChannel<BaseMessage[]>(mergeMessageWrites, {
        snapshotFrequency: MESSAGE_WRITES_PER_SNAPSHOT,
      }),
    sandbox: merged<SandboxState | null>(mergeSandbox, null),
    artifacts: merged<string[]>(mergeArtifacts, []),
    todos: merged<Todo[] | null>(mergeTodos, null),
    goal: merged<Goal | null>(mergeGoal, null),
    viewed_images: merged<Record<string, ViewedImage>>(mergeViewedImages, {}),
    promoted: merged<PromotedTools | null>(mergePromoted, null),
    delegations: merged<DelegationEntry[]>(mergeDelegations, []),
    skill_context: merged<SkillContextEntry[]>(mergeSkillContext, []),
    thread_data: () => Annotation<ThreadData | null>(),
    title: () => Annotation<string | null>(),
    uploaded_files: () => Annotation<Record<string, unknown>[] | null>(),
    summary_text: () => Annotation<string | null>(),
    background_tasks: () => Annotation<Record<string, unknown> | null>(),
    run_progress: () => Annotation<RunProgress>(),
  };
}

export const THREAD_STATE_CHANNELS = Object.keys(threadStateChannels()) as (keyof ThreadState)[];

export function isReducedChannel(channel: string): channel is keyof typeof REDUCERS {
  return Object.hasOwn(REDUCERS, channel);
}

/** `update.messages` must have passed `prepareMessageWrite`. Throws only where `mergeSandbox` does. */
export function applyStateUpdate(state: ThreadState, update: ThreadStateUpdate): ThreadState {
  const next: Record<string, unknown> = { ...state };
  for (const [channel, value] of Object.entries(update)) {
    if (channel === "messages") next[channel] = mergeMessageWrites(state.messages, [value]);
    else if (isReducedChannel(channel)) {
      next[channel] = (REDUCERS[channel] as (current: unknown, incoming: unknown) => unknown)(next[channel], value);
    } else next[channel] = value;
  }
  return next as unknown as ThreadState;
}
