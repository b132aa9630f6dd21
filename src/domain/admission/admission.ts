/**
 * The admission decision: a pure reducer over one thread's slots (architecture section 6).
 * Owns who runs next. FIFO within a class; the classes take turns by weight; a nested child borrows the slot its parent
 * waits in, so nesting cannot deadlock at any `maxRunning`; a freed slot goes to the next live waiter in the same step.
 * Does not own time, ids, promises or storage: effects say what the executor must do, saving grants before acting on them.
 */
import { invariant, unreachable } from "../shared/assert.ts";
import {
  BATCH_WAITERS_MAX,
  freeSlots,
  type AdmissionClass,
  type AdmissionDecision,
  type AdmissionEffect,
  type AdmissionEvent,
  type AdmissionOutcome,
  type AdmissionState,
  type BatchGrant,
  type HeldSlot,
  type InteractiveWaiter,
} from "./admission-state.ts";

interface Step {
  readonly state: AdmissionState;
  readonly effects: readonly AdmissionEffect[];
}

/** Due waiters leave first, so a slot never goes to one whose time is up. */
export function decideAdmission(state: AdmissionState, event: AdmissionEvent, now: number): AdmissionDecision {
  const expired = expireWaiters(state, now);
  const decided = apply(expired.state, event, now);
  const settled = handOut(decided.state, now);
  return {
    state: settled.state,
    effects: [...expired.effects, ...decided.effects, ...settled.effects],
    outcome: decided.outcome,
  };
}

function apply(state: AdmissionState, event: AdmissionEvent, now: number): AdmissionDecision {
  switch (event.kind) {
    case "acquire":
      return acquire(state, event, now);
    case "release":
      return release(state, event.ticket);
    case "request_batch":
      return requestBatch(state, event, now);
    case "withdraw_batch":
      return done({ ...state, batches: state.batches.filter((waiter) => waiter.batchId !== event.batchId) });
    case "return_grant":
      return returnGrant(state, event.grantId);
    case "extend_grant":
      return extendGrant(state, event.grantId, event.expiresAt);
    case "expire_waiters":
      return done(state);
    default:
      return unreachable(event);
  }
}

function acquire(
  state: AdmissionState,
  event: Extract<AdmissionEvent, { kind: "acquire" }>,
  now: number,
): AdmissionDecision {
  const owner = { ticket: event.ticket, taskId: event.taskId };
  const lender = state.slots.findIndex((slot) => slot.owners.at(-1)?.taskId === event.parentTaskId);
  if (event.parentTaskId !== undefined && lender >= 0) {
    return decision(lend(state, lender, owner), { kind: "granted" });
  }
  if (freeSlots(state) > 0) {
    return decision(takeTurn({ ...state, slots: [...state.slots, { owners: [owner] }] }, "interactive"), {
      kind: "granted",
    });
  }
  if (state.config.policy === "reject") return decision(state, { kind: "refused", reason: "admission_rejected" });
  if (state.interactive.length >= state.config.maxQueued) {
    return decision(state, { kind: "refused", reason: "admission_queue_full" });
  }
  const waiter: InteractiveWaiter = {
    ...owner,
    parentTaskId: event.parentTaskId,
    deadline: now + state.config.queueTimeoutMs,
  };
  return decision({ ...state, interactive: [...state.interactive, waiter] }, { kind: "queued" });
}

function lend(state: AdmissionState, index: number, owner: { ticket: number; taskId: string }): AdmissionState {
  return {
    ...state,
    slots: state.slots.map((slot, at) => (at === index ? { owners: [...slot.owners, owner] } : slot)),
  };
}

/** The running owner gives the slot back to its lender; a lender that ends early leaves the borrower in place. */
function release(state: AdmissionState, ticket: number): AdmissionDecision {
  if (state.interactive.some((waiter) => waiter.ticket === ticket)) {
    return done({ ...state, interactive: state.interactive.filter((waiter) => waiter.ticket !== ticket) });
  }
  const index = state.slots.findIndex((slot) => slot.owners.some((owner) => owner.ticket === ticket));
  const slot = state.slots[index];
  if (slot === undefined) return decision(state, { kind: "unknown" });
  const owners = slot.owners.filter((owner) => owner.ticket !== ticket);
  const others = state.slots.filter((_, at) => at !== index);
  if (owners.length === 0) return done({ ...state, slots: others });
  return relend({ ...state, slots: [...others, { owners }] });
}

/** A parent that has its slot back while more of its children wait lends it again, in their order. */
function relend(state: AdmissionState): AdmissionDecision {
  const slot = state.slots.at(-1) as HeldSlot;
  const runner = slot.owners.at(-1);
  const next = state.interactive.find((waiter) => waiter.parentTaskId === runner?.taskId);
  if (next === undefined) return done(state);
  const interactive = state.interactive.filter((waiter) => waiter !== next);
  const lent = lend({ ...state, interactive }, state.slots.length - 1, { ticket: next.ticket, taskId: next.taskId });
  return { state: lent, effects: [{ kind: "granted", ticket: next.ticket }], outcome: { kind: "done" } };
}

function requestBatch(
  state: AdmissionState,
  event: Extract<AdmissionEvent, { kind: "request_batch" }>,
  now: number,
): AdmissionDecision {
  const { batchId, wanted, grantId } = event;
  invariant(Number.isInteger(wanted) && wanted > 0, "a batch asks for at least one slot");
  const waiting = state.batches.some((waiter) => waiter.batchId === batchId);
  if (waiting) {
    const batches = state.batches.map((waiter) => (waiter.batchId === batchId ? { ...waiter, wanted } : waiter));
    return decision({ ...state, batches }, { kind: "queued" });
  }
  const slots = Math.min(wanted, freeSlots(state));
  if (slots > 0) {
    const grant = { grantId, batchId, slots, expiresAt: now + state.config.grantTtlMs };
    const next = takeTurn({ ...state, grants: [...state.grants, grant] }, "batch", slots);
    return { state: next, effects: [{ kind: "save_grant", grant }], outcome: { kind: "batch_granted", grant } };
  }
  if (state.batches.length >= BATCH_WAITERS_MAX) {
    return decision(state, { kind: "refused", reason: "admission_queue_full" });
  }
  return decision({ ...state, batches: [...state.batches, { batchId, wanted, grantId }] }, { kind: "queued" });
}

function returnGrant(state: AdmissionState, grantId: string): AdmissionDecision {
  const grants = state.grants.filter((grant) => grant.grantId !== grantId);
  if (grants.length === state.grants.length) return decision(state, { kind: "unknown" });
  return { state: { ...state, grants }, effects: [{ kind: "delete_grant", grantId }], outcome: { kind: "done" } };
}

function extendGrant(state: AdmissionState, grantId: string, expiresAt: number): AdmissionDecision {
  const known = state.grants.find((grant) => grant.grantId === grantId);
  if (known === undefined) return decision(state, { kind: "unknown" });
  const grant = { ...known, expiresAt: Math.max(known.expiresAt, expiresAt) };
  const grants = state.grants.map((each) => (each.grantId === grantId ? grant : each));
  return { state: { ...state, grants }, effects: [{ kind: "save_grant", grant }], outcome: { kind: "done" } };
}

function expireWaiters(state: AdmissionState, now: number): Step {
  const due = state.interactive.filter((waiter) => waiter.deadline <= now);
  if (due.length === 0) return { state, effects: [] };
  return {
    state: { ...state, interactive: state.interactive.filter((waiter) => waiter.deadline > now) },
    effects: due.map((waiter) => ({ kind: "timed_out", ticket: waiter.ticket })),
  };
}

/** Gives every free slot to a waiter. A batch that gets several slots of one hand-out gets them as one grant. */
function handOut(start: AdmissionState, now: number): Step {
  let state = start;
  const effects: AdmissionEffect[] = [];
  const shares = new Map<string, number>();
  while (freeSlots(state) - sum(shares) > 0) {
    const wanting = state.batches.find((waiter) => (shares.get(waiter.batchId) ?? 0) < waiter.wanted);
    const head = state.interactive[0];
    const chosen = chooseClass(state, head !== undefined, wanting !== undefined);
    if (chosen === undefined) break;
    if (chosen === "interactive" && head !== undefined) {
      state = admitWaiter(state, head);
      effects.push({ kind: "granted", ticket: head.ticket });
    } else if (wanting !== undefined) {
      shares.set(wanting.batchId, (shares.get(wanting.batchId) ?? 0) + 1);
      state = takeTurn(state, "batch");
    }
  }
  const granted = grantShares(state, shares, now);
  return { state: granted.state, effects: [...effects, ...granted.effects] };
}

/** A class keeps its turn for `weight` grants, then yields to the other if that one waits. */
function chooseClass(state: AdmissionState, interactive: boolean, batch: boolean): AdmissionClass | undefined {
  if (!interactive && !batch) return undefined;
  if (!interactive) return "batch";
  if (!batch) return "interactive";
  const { last, count } = state.turn;
  const weight = state.config.classWeights[last === "interactive" ? 0 : 1];
  if (count < weight) return last;
  return last === "interactive" ? "batch" : "interactive";
}

function takeTurn(state: AdmissionState, taken: AdmissionClass, slots = 1): AdmissionState {
  const count = state.turn.last === taken ? state.turn.count + slots : slots;
  return { ...state, turn: { last: taken, count } };
}

function admitWaiter(state: AdmissionState, waiter: InteractiveWaiter): AdmissionState {
  const owner = { ticket: waiter.ticket, taskId: waiter.taskId };
  const interactive = state.interactive.filter((each) => each !== waiter);
  return takeTurn({ ...state, interactive, slots: [...state.slots, { owners: [owner] }] }, "interactive");
}

/** A batch served leaves the queue even when it wanted more: it asks again, behind those that waited. */
function grantShares(state: AdmissionState, shares: ReadonlyMap<string, number>, now: number): Step {
  const grants = state.batches.flatMap(({ batchId, grantId }): BatchGrant[] => {
    const slots = shares.get(batchId) ?? 0;
    return slots > 0 ? [{ grantId, batchId, slots, expiresAt: now + state.config.grantTtlMs }] : [];
  });
  const batches = state.batches.filter((waiter) => !shares.has(waiter.batchId));
  const effects = grants.flatMap((grant): AdmissionEffect[] => [
    { kind: "save_grant", grant },
    { kind: "batch_turn", grant },
  ]);
  return { state: { ...state, batches, grants: [...state.grants, ...grants] }, effects };
}

function sum(shares: ReadonlyMap<string, number>): number {
  return [...shares.values()].reduce((total, share) => total + share, 0);
}

function done(state: AdmissionState): AdmissionDecision {
  return decision(state, { kind: "done" });
}

function decision(state: AdmissionState, outcome: AdmissionOutcome): AdmissionDecision {
  return { state, effects: [], outcome };
}
