/** The breaker against a model of what it promises, under a manual clock. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CircuitBreakers, type CircuitPass } from "../../../src/agent/models/circuit-breakers.ts";

const SETTINGS = { failure_threshold: 3, recovery_timeout_seconds: 60 };
const RECOVERY_MS = 60_000;

function breakers() {
  let now = 0;
  const circuits = new CircuitBreakers(SETTINGS, () => now);
  const pass = (): CircuitPass => {
    const entered = circuits.enter("m");
    if (entered === undefined) throw new Error("the circuit is open");
    return entered;
  };
  const fail = (times: number) => {
    for (let time = 0; time < times; time += 1) pass().leave("failed");
  };
  return { circuits, pass, fail, advance: (ms: number) => void (now += ms) };
}

describe("the circuit breaker of a model", () => {
  it("opens after its threshold of failures in a row; a success in between starts the row again", () => {
    const { circuits, pass, fail } = breakers();
    fail(2);
    pass().leave("succeeded");
    fail(2);
    expect(circuits.enter("m")).toBeDefined();
    fail(1);
    expect(circuits.enter("m")).toBeUndefined();
  });

  it("is one per model", () => {
    const { circuits, fail } = breakers();
    fail(3);
    expect([circuits.enter("m"), circuits.enter("other")?.isProbe]).toEqual([undefined, false]);
  });

  it("lets one probe through after the timeout, and while it is out nobody else", () => {
    const { circuits, fail, advance } = breakers();
    fail(3);
    advance(RECOVERY_MS - 1);
    expect(circuits.enter("m")).toBeUndefined();
    advance(1);
    expect(circuits.enter("m")?.isProbe).toBe(true);
    expect(circuits.enter("m")).toBeUndefined();
  });

  it("closes when its probe succeeds, and waits the whole time again when it fails", () => {
    const { circuits, pass, fail, advance } = breakers();
    fail(3);
    advance(RECOVERY_MS);
    pass().leave("failed");
    advance(RECOVERY_MS - 1);
    expect(circuits.enter("m")).toBeUndefined();
    advance(1);
    pass().leave("succeeded");
    expect(circuits.enter("m")?.isProbe).toBe(false);
  });

  it("a probe that was aborted or refused for its own sake leaves the place to the next one", () => {
    const { pass, fail, advance } = breakers();
    fail(3);
    advance(RECOVERY_MS);
    pass().leave("uncounted");
    expect(pass().isProbe).toBe(true);
  });

  it("calls that were let in before it opened neither keep it open longer nor open it again", () => {
    const { circuits, pass, fail, advance } = breakers();
    const early = pass();
    fail(3);
    advance(RECOVERY_MS - 1);
    early.leave("failed");
    advance(1);
    expect(circuits.enter("m")?.isProbe).toBe(true);
  });

  it("any success closes it, and the probe's late failure does not open it again", () => {
    const { pass, fail, advance } = breakers();
    const early = pass();
    fail(3);
    advance(RECOVERY_MS);
    const probe = pass();
    early.leave("succeeded");
    probe.leave("failed");
    expect(pass().isProbe).toBe(false);
  });

  it("property: with any calls in flight at most one probe is out, none before its time, and it always recovers", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("enter" as const) }),
      fc.record({
        kind: fc.constant("leave" as const),
        at: fc.nat(20),
        result: fc.constantFrom("succeeded" as const, "failed" as const, "uncounted" as const),
      }),
      fc.record({ kind: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 90_000 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { circuits, advance } = breakers();
        const inFlight: CircuitPass[] = [];
        let sinceOpen = Infinity;
        for (const each of steps) {
          if (each.kind === "advance") {
            advance(each.ms);
            sinceOpen += each.ms;
          } else if (each.kind === "enter") {
            const entered = circuits.enter("m");
            if (entered?.isProbe === true) {
              expect(sinceOpen).toBeGreaterThanOrEqual(RECOVERY_MS);
              expect(inFlight.filter((pass) => pass.isProbe).length).toBe(0);
            }
            if (entered !== undefined) inFlight.push(entered);
          } else if (inFlight.length > 0) {
            const [left] = inFlight.splice(each.at % inFlight.length, 1);
            const before = circuits.enter("m");
            before?.leave("uncounted");
            left?.leave(each.result);
            const opened = before?.isProbe === false && each.result === "failed";
            if (opened || (left?.isProbe === true && each.result === "failed")) sinceOpen = 0;
            if (each.result === "succeeded") expect(circuits.enter("m")?.isProbe).toBe(false);
          }
        }
        for (const pass of inFlight) pass.leave("failed");
        advance(RECOVERY_MS);
        const last = circuits.enter("m");
        expect(last).toBeDefined();
        last?.leave("succeeded");
        expect(circuits.enter("m")?.isProbe).toBe(false);
      }),
    );
  });
});
