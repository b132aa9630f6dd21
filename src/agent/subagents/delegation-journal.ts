/**
 * What the executor tells the thread about its delegations, durably (contracts, "Delegation").
 * The thread object implements it over its own storage; a process without one uses `memoryJournal`.
 */
import type { BaseMessage } from "@langchain/core/messages";

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

/** For graphs outside a thread object: remembers as long as the process lives. */
export function memoryJournal(): DelegationJournal & { cancel(taskId: string): void } {
  const started = new Set<string>();
  const cancelled = new Set<string>();
  const watchers = new Map<string, () => void>();
  return {
    started({ taskId }) {
      if (started.has(taskId)) return "already_recorded";
      started.add(taskId);
      return "recorded";
    },
    isCancelled: (taskId) => cancelled.has(taskId),
    watchCancel(taskId, onCancel) {
      watchers.set(taskId, onCancel);
      return () => {
        if (watchers.get(taskId) === onCancel) watchers.delete(taskId);
      };
    },
    cancel(taskId) {
      cancelled.add(taskId);
      watchers.get(taskId)?.();
    },
  };
}
