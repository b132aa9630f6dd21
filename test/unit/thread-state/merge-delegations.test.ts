import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SUBAGENT_STATUSES } from "../../../src/domain/delegation/status-contract.ts";
import { DELEGATION_ENTRIES_MAX, mergeDelegations } from "../../../src/agent/thread-state/merge-delegations.ts";
import type { DelegationEntry } from "../../../src/agent/thread-state/thread-state.ts";

function entry(id: string, more: Partial<DelegationEntry> = {}): DelegationEntry {
  return { id, description: "d", subagent_type: "general-purpose", status: "in_progress", ...more };
}

const ids = (entries: readonly DelegationEntry[]) => entries.map((one) => one.id);

describe("merge_delegations (R180)", () => {
  test("nothing incoming gives what is there, uncapped", () => {
    const many = Array.from({ length: DELEGATION_ENTRIES_MAX + 5 }, (_, index) => entry(`e${index}`));
    expect(mergeDelegations(many, null)).toEqual(many);
    expect(mergeDelegations(many, [])).toEqual(many);
    expect(mergeDelegations(null, undefined)).toEqual([]);
  });

  test.each(SUBAGENT_STATUSES)("a terminal entry (%s) is never downgraded, a later terminal one wins", (status) => {
    const held = [entry("a", { status, result_brief: "first" })];
    expect(mergeDelegations(held, [entry("a")])).toEqual(held);
    expect(mergeDelegations(held, [entry("a", { status: "running" as never })])).toEqual(held);
    expect(mergeDelegations(held, [entry("a", { status: "failed" })])).toEqual([entry("a", { status: "failed" })]);
  });

  test("a replacement is whole, but keeps when it was accepted and by which run", () => {
    const held = [entry("a", { run_id: "r1", created_at: "2026-01-01T00:00:00Z", result_brief: "old" })];
    const [merged] = mergeDelegations(held, [entry("a", { status: "completed", created_at: "2026-02-02T00:00:00Z" })]);
    expect(merged).toEqual(entry("a", { status: "completed", run_id: "r1", created_at: "2026-01-01T00:00:00Z" }));
  });

  test("R180 run_id stays without a created_at too, and a blank created_at is replaced", () => {
    const [merged] = mergeDelegations(
      [entry("a", { run_id: "r1", created_at: " " })],
      [entry("a", { created_at: "2026-02-02T00:00:00Z" })],
    );
    expect(merged).toMatchObject({ run_id: "r1", created_at: "2026-02-02T00:00:00Z" });
    expect(mergeDelegations([entry("a", { run_id: "r1" })], [entry("a", { run_id: "r2" })])[0]?.run_id).toBe("r2");
  });

  test("the oldest entries go past the cap, in first-seen order", () => {
    const many = Array.from({ length: DELEGATION_ENTRIES_MAX }, (_, index) => entry(`e${index}`));
    const merged = mergeDelegations(many, [entry("x"), entry("e1", { status: "completed" })]);
    expect(ids(merged)).toEqual([...ids(many).slice(1), "x"]);
  });

  test("a run's own entries are not evicted while the run adds more", () => {
    const own = entry("own", { run_id: "r2" });
    const other = Array.from({ length: DELEGATION_ENTRIES_MAX - 1 }, (_, index) =>
      entry(`o${index}`, { run_id: "r1" }),
    );
    const merged = mergeDelegations([own, ...other], [entry("new", { run_id: "r2" })]);
    expect(ids(merged)).toEqual(["own", ...ids(other).slice(1), "new"]);
  });

  const arbitraryEntry = fc.record({
    id: fc.integer({ min: 0, max: 70 }).map((number) => `e${number}`),
    run_id: fc.constantFrom("r1", "r2", "r3"),
    description: fc.constant("d"),
    subagent_type: fc.constant("bash"),
    status: fc.constantFrom("in_progress" as const, ...SUBAGENT_STATUSES),
  });
  const arbitraryEntries = fc.array(arbitraryEntry, { minLength: 30, maxLength: 90, size: "max" });

  /** One run after another, each with no more dispatches than a run may make; results come in any order, without a run id. */
  const arbitraryRuns = fc.array(
    fc.record({
      dispatches: fc.integer({ min: 1, max: DELEGATION_ENTRIES_MAX }),
      chunk: fc.integer({ min: 1, max: 8 }),
      settled: fc.array(fc.nat({ max: DELEGATION_ENTRIES_MAX - 1 }), { maxLength: 60 }),
    }),
    { minLength: 1, maxLength: 5 },
  );

  test("R41 R180 a run's own entries are never evicted, and keep their run however often they are replaced", () => {
    let evicted = 0;
    fc.assert(
      fc.property(arbitraryRuns, (runs) => {
        let ledger: DelegationEntry[] = [];
        for (const [at, { dispatches, chunk, settled }] of runs.entries()) {
          const runId = `r${at}`;
          const own = Array.from({ length: dispatches }, (_, n) => `${runId}-${n}`);
          for (let from = 0; from < own.length; from += chunk) {
            const answer = own.slice(from, from + chunk).map((id) => entry(id, { run_id: runId }));
            ledger = mergeDelegations(ledger, answer);
            const results = settled.flatMap((n) => own.slice(0, from + chunk)[n] ?? []);
            ledger = mergeDelegations(
              ledger,
              results.map((id) => entry(id, { status: "completed" })),
            );
            const kept = ledger.filter((one) => one.run_id === runId).map((one) => one.id);
            expect(kept).toEqual(own.slice(0, from + chunk));
          }
          expect(ledger.length).toBeLessThanOrEqual(DELEGATION_ENTRIES_MAX);
        }
        evicted += runs.reduce((sum, { dispatches }) => sum + dispatches, 0) - ledger.length;
      }),
      { numRuns: 200 },
    );
    expect(evicted, "the cap must be reached").toBeGreaterThan(100);
  });

  test("ids are unique, terminal stays terminal, eviction stops at the cap and spares the newest run", () => {
    let evicted = 0;
    fc.assert(
      fc.property(arbitraryEntries, arbitraryEntries, (first, second) => {
        const held = mergeDelegations([], first);
        const merged = mergeDelegations(held, second);
        const kept = new Set(ids(merged));
        const newest = merged.at(-1)?.run_id;
        expect(kept.size).toBe(merged.length);
        for (const one of held) {
          const now = merged.find((candidate) => candidate.id === one.id);
          if (one.status !== "in_progress" && now !== undefined) expect(now.status).not.toBe("in_progress");
        }
        if (merged.length > DELEGATION_ENTRIES_MAX) expect(merged.every((one) => one.run_id === newest)).toBe(true);
        const lost = held.filter((one) => !kept.has(one.id));
        evicted += lost.length;
        const replaced = new Map(second.map((one) => [one.id, one.run_id]));
        expect(lost.filter((one) => !replaced.has(one.id) && one.run_id === newest)).toEqual([]);
      }),
      { numRuns: 300 },
    );
    expect(evicted, "the cap must be reached").toBeGreaterThan(100);
  });
});
