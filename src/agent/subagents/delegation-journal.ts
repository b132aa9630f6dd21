/**
 * What the executor tells the thread about its delegations, durably (contracts, "Delegation").
 * The thread object implements it over its own storage; a process without one uses `memoryJournal`.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { RecentMap } from "../runtime/recent-map.ts";

export interface DelegationStart {
  /** The tool-call id. */
  readonly taskId: string;
  readonly description: string;
  readonly subagentType: string;
  readonly modelName: string;
  /** Where an interactive child's checkpoints stand: the namespace of its `task` call's own task. */
  readonly checkpointNs: string;
}

export interface DelegationJournal {
  /**
   * Called at acceptance, before the queue. Stores `subagent.start` and the namespace, once per task id, also across
   * recovery: "recorded" the first time, "already_recorded" after that.
   */
  started(start: DelegationStart): "recorded" | "already_recorded" | Promise<"recorded" | "already_recorded">;
  /**
   * A step of a child whose steps nobody else stores: one that keeps no checkpoints with its parent. In the order they
   * came; not called for a child of a graph here, whose steps are told by its commits.
   */
  stepped?(taskId: string, message: BaseMessage): void;
  /** True once this delegation was cancelled by request, also when the request came before a crash. */
  isCancelled(taskId: string): boolean | Promise<boolean>;
  /**
   * Calls back when this delegation is cancelled by request while it runs here; the newest watcher of an id is the one.
   * Gives the disposer, which removes that watcher and no newer one.
   */
  watchCancel?(taskId: string, onCancel: () => void): () => void;
}

/** A delegation is asked for again only while its run is open, so the newest are enough. */
export const DELEGATIONS_KEPT_MAX = 1_000;

/** For graphs outside a thread object: remembers the newest delegations, as long as the process lives. */
export function memoryJournal(): DelegationJournal & { cancel(taskId: string): void } {
  const started = new RecentMap<true>(DELEGATIONS_KEPT_MAX);
  const cancelled = new RecentMap<true>(DELEGATIONS_KEPT_MAX);
  const watchers = new Map<string, () => void>();
  return {
    started({ taskId }) {
      if (started.get(taskId)) return "already_recorded";
      started.set(taskId, true);
      return "recorded";
    },
    isCancelled: (taskId) => cancelled.get(taskId) === true,
    watchCancel(taskId, onCancel) {
      watchers.set(taskId, onCancel);
      return () => {
        if (watchers.get(taskId) === onCancel) watchers.delete(taskId);
      };
    },
    cancel(taskId) {
      cancelled.set(taskId, true);
      watchers.get(taskId)?.();
    },
  };
}
