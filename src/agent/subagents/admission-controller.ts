/**
 * Executes the admission decision in one process: promises for children of this object, stored grants for consumers.
 * Owns the tickets, the one queue timer and the waiters' promises; `domain/admission` owns who runs next.
 * A slot that was granted is either returned to its caller or released here, whatever its signal did meanwhile.
 */
import { decideAdmission } from "../../domain/admission/admission.ts";
import {
  heldSlots,
  initialAdmission,
  nextWaiterDeadline,
  type AdmissionConfig,
  type AdmissionEffect,
  type AdmissionEvent,
  type AdmissionOutcome,
  type AdmissionState,
  type BatchGrant,
  type QueueRefusal,
} from "../../domain/admission/admission-state.ts";
import { unreachable } from "../../domain/shared/assert.ts";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import type { GrantStore } from "./grant-store.ts";
import type { Timers } from "./timers.ts";

export interface Slot {
  /** Hands the slot on. Later calls change nothing. */
  release(): void;
}

export type AdmissionRefusal = QueueRefusal | "admission_timeout" | "cancelled";

export interface AcquireRequest {
  readonly taskId: string;
  readonly signal: AbortSignal;
  /** The child whose `task` call this is: it lends its slot. Absent for children of the lead. */
  readonly parentTaskId?: string;
}

export interface AdmissionSnapshot {
  readonly max_running: number;
  readonly running: number;
  readonly max_queued: number;
  readonly queued: number;
  readonly admission_policy: "queue" | "reject";
  readonly waiting_batches: number;
  readonly grants: readonly BatchGrant[];
}

export interface AdmissionPorts {
  readonly config: AdmissionConfig;
  readonly grants: GrantStore;
  readonly now: () => number;
  readonly newId: () => string;
  readonly timers: Timers;
  /** A batch that had to wait got its turn: the grant is stored and must be used or returned. */
  readonly onBatchTurn: (grant: BatchGrant) => void;
}

type Settle = (outcome: Result<Slot, AdmissionRefusal>) => void;

export class AdmissionController {
  readonly #ports: AdmissionPorts;
  readonly #waiting = new Map<number, Settle>();
  #state: AdmissionState;
  #nextTicket = 1;
  #timer: unknown;

  constructor(ports: AdmissionPorts) {
    this.#ports = ports;
    this.#state = initialAdmission(ports.config, ports.grants.load());
  }

  /** Resolves once the child may run, or with why it may not. Never rejects. */
  acquire(request: AcquireRequest): Promise<Result<Slot, AdmissionRefusal>> {
    if (request.signal.aborted) return Promise.resolve(err("cancelled"));
    const ticket = this.#nextTicket++;
    const { taskId, parentTaskId } = request;
    const nested = parentTaskId === undefined ? {} : { parentTaskId };
    const outcome = this.#dispatch({ kind: "acquire", ticket, taskId, ...nested });
    if (outcome.kind === "refused") return Promise.resolve(err(outcome.reason));
    if (outcome.kind === "granted") return Promise.resolve(ok(this.#slot(ticket)));
    return this.#wait(ticket, request.signal);
  }

  /** A stored grant of up to `wanted` slots, or `undefined`: then `onBatchTurn` follows when the batch's turn comes. */
  grantBatch(batchId: string, wanted: number): BatchGrant | undefined {
    const outcome = this.#dispatch({ kind: "request_batch", batchId, wanted, grantId: this.#ports.newId() });
    return outcome.kind === "batch_granted" ? outcome.grant : undefined;
  }

  /** The batch no longer wants its turn. */
  withdrawBatch(batchId: string): void {
    this.#dispatch({ kind: "withdraw_batch", batchId });
  }

  /** False when the grant is unknown: returned before. */
  returnGrant(grantId: string): boolean {
    return this.#dispatch({ kind: "return_grant", grantId }).kind === "done";
  }

  /** Keeps a grant as long as the lease claimed under it lives. Never shortens it. */
  extendGrant(grantId: string, expiresAt: number): boolean {
    return this.#dispatch({ kind: "extend_grant", grantId, expiresAt }).kind === "done";
  }

  snapshot(): AdmissionSnapshot {
    const { config, interactive, batches, grants } = this.#state;
    return {
      max_running: config.maxRunning,
      running: heldSlots(this.#state),
      max_queued: config.maxQueued,
      queued: interactive.length,
      admission_policy: config.policy,
      waiting_batches: batches.length,
      grants,
    };
  }

  async #wait(ticket: number, signal: AbortSignal): Promise<Result<Slot, AdmissionRefusal>> {
    const { promise, resolve } = Promise.withResolvers<Result<Slot, AdmissionRefusal>>();
    this.#waiting.set(ticket, resolve);
    const onAbort = (): void => {
      if (!this.#waiting.delete(ticket)) return;
      resolve(err("cancelled"));
      this.#dispatch({ kind: "release", ticket });
    };
    signal.addEventListener("abort", onAbort, { once: true });
    const outcome = await promise;
    signal.removeEventListener("abort", onAbort);
    if (!outcome.ok || !signal.aborted) return outcome;
    outcome.value.release();
    return err("cancelled");
  }

  #slot(ticket: number): Slot {
    return { release: () => void this.#dispatch({ kind: "release", ticket }) };
  }

  #dispatch(event: AdmissionEvent): AdmissionOutcome {
    const now = this.#ports.now();
    const { state, effects, outcome } = decideAdmission(this.#state, event, now);
    for (const effect of effects) this.#store(effect);
    this.#state = state;
    this.#schedule(now);
    for (const effect of effects) this.#act(effect);
    return outcome;
  }

  #store(effect: AdmissionEffect): void {
    if (effect.kind === "save_grant") this.#ports.grants.save(effect.grant);
    if (effect.kind === "delete_grant") this.#ports.grants.delete(effect.grantId);
  }

  #act(effect: AdmissionEffect): void {
    switch (effect.kind) {
      case "granted":
        return this.#settle(effect.ticket, ok(this.#slot(effect.ticket)));
      case "timed_out":
        return this.#settle(effect.ticket, err("admission_timeout"));
      case "batch_turn":
        return this.#ports.onBatchTurn(effect.grant);
      case "save_grant":
      case "delete_grant":
        return;
      default:
        unreachable(effect);
    }
  }

  #settle(ticket: number, outcome: Result<Slot, AdmissionRefusal>): void {
    const settle = this.#waiting.get(ticket);
    this.#waiting.delete(ticket);
    settle?.(outcome);
  }

  #schedule(now: number): void {
    this.#ports.timers.clear(this.#timer);
    const deadline = nextWaiterDeadline(this.#state);
    this.#timer =
      deadline === undefined
        ? undefined
        : this.#ports.timers.set(Math.max(0, deadline - now), () => void this.#dispatch({ kind: "expire_waiters" }));
  }
}
