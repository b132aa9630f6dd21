/**
 * The plain shapes of a thread's admission: who holds its slots and who waits (architecture section 6).
 * Owns no decision. Invariants kept by `admission.ts`: held slots never grow past `maxRunning` (a lowered limit drains);
 * nobody waits while a slot is free; an interactive waiter whose parent runs in a slot never waits (it borrows that slot).
 */

export type AdmissionClass = "interactive" | "batch";

export interface AdmissionConfig {
  readonly maxRunning: number;
  /** Interactive waiters. Batches wait once per batch and are bounded by `BATCH_WAITERS_MAX`. */
  readonly maxQueued: number;
  readonly policy: "queue" | "reject";
  readonly queueTimeoutMs: number;
  /** Consecutive grants a class may take while the other waits: [interactive, batch]. */
  readonly classWeights: readonly [number, number];
  /** Life of a batch grant; the lease of the items claimed under it. */
  readonly grantTtlMs: number;
}

/** Batches that may wait for a turn at once; a batch past it is refused and asks again at its next sweep. */
export const BATCH_WAITERS_MAX = 1_000;

/** One child. `ticket` is unique in the life of the object; holders and waiters die with it. */
export interface SlotOwner {
  readonly ticket: number;
  readonly taskId: string;
}

/** A slot and those it is lent along: the last owner runs, the ones before wait in their own `task` call. */
export interface HeldSlot {
  readonly owners: readonly SlotOwner[];
}

export interface InteractiveWaiter extends SlotOwner {
  readonly parentTaskId: string | undefined;
  readonly deadline: number;
}

export interface BatchWaiter {
  readonly batchId: string;
  readonly wanted: number;
  /** The id its grant will get. */
  readonly grantId: string;
}

/**
 * `slots` items of one batch may run until `expiresAt`. Outlives the object's memory. Its slots stay taken until it is
 * returned: whoever sent the wake looks at `expiresAt`, because only a look into D1 tells whether a lease lives on.
 */
export interface BatchGrant {
  readonly grantId: string;
  readonly batchId: string;
  readonly slots: number;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

export interface AdmissionState {
  readonly config: AdmissionConfig;
  readonly slots: readonly HeldSlot[];
  readonly grants: readonly BatchGrant[];
  readonly interactive: readonly InteractiveWaiter[];
  readonly batches: readonly BatchWaiter[];
  /** The class that was granted last and how often in a row. */
  readonly turn: { readonly last: AdmissionClass; readonly count: number };
}

export type AdmissionEvent =
  | {
      readonly kind: "acquire";
      readonly ticket: number;
      readonly taskId: string;
      /** The child whose `task` call this is; absent for children of the lead. */
      readonly parentTaskId?: string;
    }
  /** The holder or waiter is done with admission: finished, cancelled or gone. Unknown tickets change nothing. */
  | { readonly kind: "release"; readonly ticket: number }
  | { readonly kind: "request_batch"; readonly batchId: string; readonly wanted: number; readonly grantId: string }
  | { readonly kind: "withdraw_batch"; readonly batchId: string }
  | { readonly kind: "return_grant"; readonly grantId: string }
  /** The lease behind the grant was renewed. */
  | { readonly kind: "extend_grant"; readonly grantId: string; readonly expiresAt: number }
  /** Expires due waiters only. */
  | { readonly kind: "expire_waiters" };

export type QueueRefusal = "admission_rejected" | "admission_queue_full";

export type AdmissionEffect =
  /** A waiter got its slot. */
  | { readonly kind: "granted"; readonly ticket: number }
  | { readonly kind: "timed_out"; readonly ticket: number }
  /** A waiting batch got its turn. */
  | { readonly kind: "batch_turn"; readonly grant: BatchGrant }
  | { readonly kind: "save_grant"; readonly grant: BatchGrant }
  | { readonly kind: "delete_grant"; readonly grantId: string };

export type AdmissionOutcome =
  | { readonly kind: "granted" }
  | { readonly kind: "queued" }
  | { readonly kind: "refused"; readonly reason: QueueRefusal }
  | { readonly kind: "batch_granted"; readonly grant: BatchGrant }
  | { readonly kind: "done" }
  | { readonly kind: "unknown" };

export interface AdmissionDecision {
  readonly state: AdmissionState;
  readonly effects: readonly AdmissionEffect[];
  readonly outcome: AdmissionOutcome;
}

/** Grants restored from storage keep their slots, even past a lowered `maxRunning`. */
export function initialAdmission(config: AdmissionConfig, grants: readonly BatchGrant[] = []): AdmissionState {
  return {
    config,
    slots: [],
    grants,
    interactive: [],
    batches: [],
    turn: { last: "batch", count: config.classWeights[1] },
  };
}

export function heldSlots(state: AdmissionState): number {
  return state.slots.length + state.grants.reduce((sum, grant) => sum + grant.slots, 0);
}

export function freeSlots(state: AdmissionState): number {
  return Math.max(0, state.config.maxRunning - heldSlots(state));
}

/** When the next interactive waiter gives up; `undefined` while none waits. */
export function nextWaiterDeadline(state: AdmissionState): number | undefined {
  if (state.interactive.length === 0) return undefined;
  return Math.min(...state.interactive.map((waiter) => waiter.deadline));
}
