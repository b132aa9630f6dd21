/** What a consumer needs from outside: something that runs an item, and the way back to the thread. Shapes only. */
import type { BatchFile } from "../../domain/batch/batch.ts";
import type { Role } from "../../domain/trust/principal.ts";
import type { BatchItemOutcome } from "../../domain/batch/item-settlement.ts";

export interface RunnableItem {
  readonly batchId: string;
  readonly owner: string;
  readonly threadId: string;
  readonly ordinal: number;
  readonly key: string;
  /** With the item's key and the idempotency note before it. */
  readonly prompt: string;
  /** From 1. */
  readonly attempt: number;
}

export interface ItemSetting {
  readonly subagentType: string;
  /** The snapshot taken at submit. */
  readonly definition: unknown;
  /** Of whoever submitted the batch. */
  readonly submitterRole: Role;
  readonly files: readonly BatchFile[];
  readonly timeoutMs: number;
}

/**
 * Runs one attempt. A throw counts as a failure. When `signal` aborts, the outcome no longer matters to the caller
 * beyond its arrival: it means that the child has stopped.
 */
export interface BatchItemRunner {
  run(item: RunnableItem, setting: ItemSetting, signal: AbortSignal): Promise<BatchItemOutcome>;
}

/** The thread object's `returnGrant`. */
export interface GrantReturn {
  returnGrant(grant: {
    readonly owner: string;
    readonly threadId: string;
    readonly batchId: string;
    readonly grantId: string;
  }): Promise<void>;
}
