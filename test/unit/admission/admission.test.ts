import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decideAdmission } from "../../../src/domain/admission/admission.ts";
import {
  freeSlots,
  heldSlots,
  initialAdmission,
  type AdmissionConfig,
  type AdmissionDecision,
  type AdmissionEffect,
  type AdmissionEvent,
  type AdmissionState,
} from "../../../src/domain/admission/admission-state.ts";

const CONFIG: AdmissionConfig = {
  maxRunning: 3,
  maxQueued: 64,
  policy: "queue",
  queueTimeoutMs: 300_000,
  classWeights: [1, 1],
  grantTtlMs: 120_000,
};

/** Plays events at time 0 (or their own time) and keeps every effect. */
function play(config: Partial<AdmissionConfig>, events: readonly (AdmissionEvent & { at?: number })[]) {
  let state = initialAdmission({ ...CONFIG, ...config });
  const steps: AdmissionDecision[] = [];
  for (const event of events) {
    const decision = decideAdmission(state, event, event.at ?? 0);
    state = decision.state;
    steps.push(decision);
  }
  return { state, steps, outcomes: steps.map((step) => step.outcome.kind) };
}

const acquire = (ticket: number, parentTaskId?: string): AdmissionEvent => ({
  kind: "acquire",
  ticket,
  taskId: `t${ticket}`,
  ...(parentTaskId === undefined ? {} : { parentTaskId }),
});
const release = (ticket: number): AdmissionEvent => ({ kind: "release", ticket });
const batch = (batchId: string, wanted: number): AdmissionEvent => ({
  kind: "request_batch",
  batchId,
  wanted,
  grantId: `g-${batchId}`,
});
const at = (time: number, event: AdmissionEvent): AdmissionEvent & { at: number } => ({ ...event, at: time });
const grantedTickets = (effects: readonly AdmissionEffect[]): number[] =>
  effects.flatMap((effect) => (effect.kind === "granted" ? [effect.ticket] : []));

describe("one class", () => {
  test("R33 waiters are granted first in, first out", () => {
    const { outcomes, steps } = play({ maxRunning: 1 }, [acquire(1), acquire(2), acquire(3), release(1), release(2)]);
    expect(outcomes).toEqual(["granted", "queued", "queued", "done", "done"]);
    expect(steps.map((step) => grantedTickets(step.effects))).toEqual([[], [], [], [2], [3]]);
  });

  test("R33 a full queue and the reject policy are different refusals", () => {
    const full = play({ maxRunning: 1, maxQueued: 1 }, [acquire(1), acquire(2), acquire(3)]);
    expect(full.steps[2]?.outcome).toEqual({ kind: "refused", reason: "admission_queue_full" });
    const reject = play({ maxRunning: 1, policy: "reject" }, [acquire(1), acquire(2)]);
    expect(reject.steps[1]?.outcome).toEqual({ kind: "refused", reason: "admission_rejected" });
  });

  test("R37 a slot freed in the instant a waiter times out goes to the next one", () => {
    const { steps, state } = play({ maxRunning: 1, queueTimeoutMs: 10 }, [
      acquire(1),
      acquire(2),
      at(5, acquire(3)),
      at(10, release(1)),
    ]);
    expect(steps[3]?.effects).toEqual([
      { kind: "timed_out", ticket: 2 },
      { kind: "granted", ticket: 3 },
    ]);
    expect(heldSlots(state)).toBe(1);
  });

  test("R37 a cancelled waiter leaves the queue and costs nobody a slot", () => {
    const { steps, state } = play({ maxRunning: 1 }, [acquire(1), acquire(2), acquire(3), release(2), release(1)]);
    expect(grantedTickets(steps[4]?.effects ?? [])).toEqual([3]);
    expect(heldSlots(state)).toBe(1);
  });
});

describe("nesting", () => {
  test("a chain of nested children completes at max_running 1", () => {
    const { outcomes, state } = play({ maxRunning: 1 }, [
      acquire(1),
      acquire(2, "t1"),
      acquire(3, "t2"),
      release(3),
      release(2),
      release(1),
    ]);
    expect(outcomes).toEqual(["granted", "granted", "granted", "done", "done", "done"]);
    expect(freeSlots(state)).toBe(1);
  });

  test("a parent's parallel children pass its slot on among themselves before strangers get one", () => {
    const { steps } = play({ maxRunning: 1 }, [
      acquire(1),
      acquire(9),
      acquire(2, "t1"),
      acquire(3, "t1"),
      release(2),
      release(3),
      release(1),
    ]);
    expect(steps.map((step) => step.outcome.kind).slice(2, 4)).toEqual(["granted", "queued"]);
    expect(steps.slice(4).map((step) => grantedTickets(step.effects))).toEqual([[3], [], [9]]);
  });

  test("a parent cancelled while its slot is lent leaves the slot with the child, once", () => {
    const { state, steps } = play({ maxRunning: 1 }, [
      acquire(1),
      acquire(2, "t1"),
      acquire(3),
      release(1),
      release(2),
    ]);
    expect(steps.slice(3).map((step) => grantedTickets(step.effects))).toEqual([[], [3]]);
    expect(heldSlots(state)).toBe(1);
  });
});

describe("two classes", () => {
  test("an interactive head is granted within two releases while batches wait", () => {
    const { steps } = play({ maxRunning: 2 }, [
      acquire(1),
      acquire(2),
      batch("a", 5),
      batch("b", 5),
      acquire(3),
      release(1),
      release(2),
    ]);
    expect(steps.slice(5).flatMap((step) => grantedTickets(step.effects))).toEqual([3]);
  });

  test("a batch is granted within two releases while interactive waiters keep coming", () => {
    const { steps } = play({ maxRunning: 1 }, [
      acquire(1),
      acquire(2),
      acquire(3),
      batch("a", 5),
      release(1),
      release(2),
    ]);
    const kinds = steps.slice(4).flatMap((step) => step.effects.map((effect) => effect.kind));
    expect(kinds).toContain("batch_turn");
  });

  test("free slots are granted to a batch as one grant that expires and is stored first", () => {
    const { steps, state } = play({ maxRunning: 3 }, [acquire(1), batch("a", 5)]);
    const grant = { grantId: "g-a", batchId: "a", slots: 2, expiresAt: 120_000 };
    expect(steps[1]?.outcome).toEqual({ kind: "batch_granted", grant });
    expect(steps[1]?.effects).toEqual([{ kind: "save_grant", grant }]);
    expect(freeSlots(state)).toBe(0);
  });

  test("a returned grant frees its slots; returning it again changes nothing", () => {
    const { steps, state } = play({ maxRunning: 2 }, [
      batch("a", 2),
      acquire(1),
      { kind: "return_grant", grantId: "g-a" },
      { kind: "return_grant", grantId: "g-a" },
    ]);
    expect(steps[2]?.effects).toEqual([
      { kind: "delete_grant", grantId: "g-a" },
      { kind: "granted", ticket: 1 },
    ]);
    expect(steps[3]?.outcome.kind).toBe("unknown");
    expect(heldSlots(state)).toBe(1);
  });

  test("a returned grant of several slots is shared by the classes in turns", () => {
    const { steps } = play({ maxRunning: 4 }, [
      batch("a", 4),
      acquire(1),
      acquire(2),
      acquire(3),
      batch("b", 4),
      { kind: "return_grant", grantId: "g-a" },
    ]);
    expect(grantedTickets(steps[5]?.effects ?? [])).toEqual([1, 2]);
    expect(steps[5]?.effects).toContainEqual({
      kind: "batch_turn",
      grant: { grantId: "g-b", batchId: "b", slots: 2, expiresAt: 120_000 },
    });
  });

  test("a renewed lease extends its grant and never shortens it", () => {
    const { steps, state } = play({ maxRunning: 1 }, [
      batch("a", 1),
      { kind: "extend_grant", grantId: "g-a", expiresAt: 240_000 },
      { kind: "extend_grant", grantId: "g-a", expiresAt: 200_000 },
      { kind: "extend_grant", grantId: "g-b", expiresAt: 240_000 },
    ]);
    const grant = { grantId: "g-a", batchId: "a", slots: 1, expiresAt: 240_000 };
    expect(steps[1]?.effects).toEqual([{ kind: "save_grant", grant }]);
    expect(steps[3]?.outcome.kind).toBe("unknown");
    expect(state.grants).toEqual([grant]);
  });
});

/** A run of random commands against a model that knows only the promises, not the algorithm. */
describe("model", () => {
  const command = fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant("acquire" as const), nestedIn: fc.option(fc.nat(9)) }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant("release" as const), pick: fc.nat(20) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("batch" as const),
        id: fc.nat(3),
        wanted: fc.integer({ min: 1, max: 6 }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("return" as const), pick: fc.nat(5) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 400 }) }) },
  );

  test("P1 P8 never more than max_running held, no slot lost, first in first out, no waiter beside a free slot", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 })),
        fc.array(command, { maxLength: 80 }),
        (maxRunning, classWeights, commands) => {
          const config = { ...CONFIG, maxRunning, maxQueued: 6, classWeights, queueTimeoutMs: 500, grantTtlMs: 900 };
          const model = new Model(config);
          for (const each of commands) model.run(each);
          model.drain();
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

type Command =
  | { kind: "acquire"; nestedIn: number | null }
  | { kind: "release"; pick: number }
  | { kind: "batch"; id: number; wanted: number }
  | { kind: "return"; pick: number }
  | { kind: "pass"; ms: number };

class Model {
  #state: AdmissionState;
  readonly #config: AdmissionConfig;
  #now = 0;
  #ticket = 0;
  #grant = 0;
  readonly #running = new Set<number>();
  readonly #order: number[] = [];
  /** Top-level tickets in the order they asked: nested ones may overtake by borrowing. */
  readonly #nested = new Set<number>();
  #batchGrantsWhileInteractiveWaits = 0;

  constructor(config: AdmissionConfig) {
    this.#config = config;
    this.#state = initialAdmission(config);
  }

  run(command: Command): void {
    if (command.kind === "acquire") this.#acquire(command.nestedIn);
    if (command.kind === "release") this.#release(command.pick);
    if (command.kind === "batch") this.#step(batchEvent(command, this.#grant++));
    if (command.kind === "return") {
      const grant = this.#state.grants[command.pick];
      if (grant !== undefined) this.#step({ kind: "return_grant", grantId: grant.grantId });
    }
    if (command.kind === "pass") {
      this.#now += command.ms;
      this.#step({ kind: "expire_waiters" });
    }
  }

  /** Everything that runs ends, again and again: then nobody may be left waiting. */
  drain(): void {
    for (let round = 0; round < 200; round += 1) {
      const runner = this.#state.slots.map((slot) => slot.owners.at(-1)?.ticket).find((each) => each !== undefined);
      const grant = this.#state.grants[0];
      if (runner !== undefined) this.#finish(runner);
      else if (grant !== undefined) this.#step({ kind: "return_grant", grantId: grant.grantId });
      else break;
    }
    expect(this.#state.interactive).toEqual([]);
    expect(this.#state.batches).toEqual([]);
    expect(freeSlots(this.#state)).toBe(this.#config.maxRunning);
  }

  #acquire(nestedIn: number | null): void {
    const parent = nestedIn === null ? undefined : [...this.#running][nestedIn];
    const ticket = (this.#ticket += 1);
    if (parent !== undefined) this.#nested.add(ticket);
    else this.#order.push(ticket);
    const decision = this.#step({ ...acquire(ticket, parent === undefined ? undefined : `t${parent}`) });
    if (decision.outcome.kind === "granted") this.#running.add(ticket);
    if (decision.outcome.kind === "refused") this.#forget(ticket);
  }

  #release(pick: number): void {
    const tickets = [...this.#running, ...this.#state.interactive.map((waiter) => waiter.ticket)];
    const ticket = tickets[pick];
    if (ticket !== undefined) this.#finish(ticket);
  }

  #finish(ticket: number): void {
    this.#running.delete(ticket);
    this.#forget(ticket);
    this.#step({ kind: "release", ticket });
  }

  #forget(ticket: number): void {
    const at = this.#order.indexOf(ticket);
    if (at >= 0) this.#order.splice(at, 1);
  }

  #step(event: AdmissionEvent): AdmissionDecision {
    const headBefore = this.#state.interactive[0]?.ticket;
    const decision = decideAdmission(this.#state, event, this.#now);
    this.#state = decision.state;
    for (const effect of decision.effects) this.#observe(effect);
    this.#checkStarvation(decision, headBefore);
    expect(heldSlots(this.#state)).toBeLessThanOrEqual(this.#config.maxRunning);
    const owners = this.#state.slots.flatMap((slot) => slot.owners.map((owner) => owner.ticket));
    const granted = event.kind === "acquire" && decision.outcome.kind === "granted" ? [event.ticket] : [];
    expect(new Set(owners)).toEqual(new Set([...this.#running, ...granted]));
    if (freeSlots(this.#state) > 0) {
      expect(this.#state.interactive).toEqual([]);
      expect(this.#state.batches).toEqual([]);
    }
    return decision;
  }

  #observe(effect: AdmissionEffect): void {
    if (effect.kind === "timed_out") this.#forget(effect.ticket);
    if (effect.kind !== "granted") return;
    this.#running.add(effect.ticket);
    if (this.#nested.has(effect.ticket)) return;
    const waiting = this.#order.filter((ticket) => !this.#running.has(ticket) || ticket === effect.ticket);
    expect(waiting[0]).toBe(effect.ticket);
  }

  /** Slots granted to batches past a waiting interactive head stay within the batch weight. */
  #checkStarvation(decision: AdmissionDecision, headBefore: number | undefined): void {
    const stillHead = headBefore !== undefined && this.#state.interactive[0]?.ticket === headBefore;
    if (!stillHead) {
      this.#batchGrantsWhileInteractiveWaits = 0;
      return;
    }
    for (const effect of decision.effects) {
      if (effect.kind === "batch_turn") this.#batchGrantsWhileInteractiveWaits += effect.grant.slots;
    }
    expect(this.#batchGrantsWhileInteractiveWaits).toBeLessThanOrEqual(this.#config.classWeights[1]);
  }
}

function batchEvent(command: { id: number; wanted: number }, grant: number): AdmissionEvent {
  return { kind: "request_batch", batchId: `b${command.id}`, wanted: command.wanted, grantId: `g${grant}` };
}
