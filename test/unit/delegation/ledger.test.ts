import { describe, expect, test } from "vitest";
import { decideCut } from "../../../src/domain/delegation/delegation-limit.ts";
import {
  countRunDelegations,
  decideDispatches,
  decideResults,
  type LedgerEntry,
} from "../../../src/domain/delegation/ledger.ts";
import { LEDGER_RENDER_CHARS_MAX, renderLedger } from "../../../src/domain/delegation/ledger-rendering.ts";

const STAMP = { runId: "r1", createdAt: "2026-01-01T00:00:00.000Z" };
const sha = (text: string): string => `sha(${text})`;
const entry = (id: string, more: Partial<LedgerEntry> = {}): LedgerEntry => ({
  id,
  run_id: "r1",
  description: `do ${id}`,
  subagent_type: "bash",
  status: "in_progress",
  ...more,
});

describe("entries", () => {
  test("R47 a dispatch becomes an in_progress entry of its run; a known id is not tagged again", () => {
    const calls = [
      { id: "a", args: { description: "count", prompt: "p", subagent_type: "bash" } },
      { id: "b", args: { description: "", prompt: "p".repeat(300), subagent_type: "bash" } },
      { id: "old", args: { description: "again" } },
    ];
    const entries = decideDispatches(calls, [entry("old", { run_id: "r0" })], STAMP);
    expect(entries.map((each) => each.id)).toEqual(["a", "b"]);
    expect(entries[0]).toEqual({
      id: "a",
      run_id: "r1",
      description: "count",
      subagent_type: "bash",
      status: "in_progress",
      created_at: STAMP.createdAt,
    });
    expect(entries[1]?.description).toBe("p".repeat(200));
  });

  test("what the model wrote as a type is bounded in its entry, and the entry stays in sight", () => {
    const args = { description: "d", prompt: "p", subagent_type: "t".repeat(100_000) };
    const entries = decideDispatches([{ id: "a", args }], [], STAMP);
    expect(entries[0]?.subagent_type).toBe("t".repeat(200));
    expect(renderLedger(entries)).toContain("[in_progress] d ");
  });

  test("a result's status comes from its metadata, never from its text", () => {
    const known = [entry("a"), entry("b"), entry("c")];
    const results = [
      { toolCallId: "a", messageId: "m1", kwargs: { subagent_status: "completed", subagent_result_brief: "42" } },
      { toolCallId: "b", messageId: "m2", kwargs: {} },
      { toolCallId: "c", messageId: undefined, kwargs: { subagent_status: "timed_out" } },
    ];
    expect(decideResults(results, known, sha)).toEqual([
      entry("a", { status: "completed", result_brief: "42", result_sha256: "sha(42)", result_ref: "m1" }),
      entry("c", {
        status: "timed_out",
        result_brief: "Task timed out.",
        result_sha256: "sha(Task timed out.)",
        result_ref: "c",
      }),
    ]);
  });

  test("a terminal entry is never written again", () => {
    const results = [{ toolCallId: "a", messageId: "m1", kwargs: { subagent_status: "failed" } }];
    expect(decideResults(results, [entry("a", { status: "completed" })], sha)).toEqual([]);
  });

  test("R41 R190 only the run's own delegations count; without a run id all do", () => {
    const entries = [entry("a"), entry("b", { run_id: "r0" }), entry("c", { status: "failed" })];
    expect(countRunDelegations(entries, "r1")).toBe(2);
    expect(countRunDelegations(entries, undefined)).toBe(3);
  });
});

describe("R102 stop reasons", () => {
  test.each(["token_capped", "turn_capped", "loop_capped"] as const)(
    "%s is kept with the entry, by its metadata",
    (reason) => {
      const kwargs = { subagent_status: "completed", subagent_result_brief: "half", subagent_stop_reason: reason };
      const [kept] = decideResults([{ toolCallId: "a", messageId: "m", kwargs }], [entry("a")], sha);
      expect(kept).toMatchObject({ status: "completed", stop_reason: reason, result_brief: "half", run_id: "r1" });
    },
  );

  const STATUSES = ["in_progress", "completed", "failed", "cancelled", "timed_out", "polling_timed_out"] as const;
  const REASONS = [undefined, "token_capped", "turn_capped", "loop_capped"] as const;
  const GUIDANCE = {
    in_progress: /already delegated, do NOT delegate again/,
    completed: /do NOT delegate again, reuse this result/,
    retry: /prior attempt, may be retried with a changed plan/,
    partial: /guardrail cap with a partial result: use what it has, narrow the task, or raise `max_turns`/,
    unusable: /guardrail cap with no usable result: change the plan/,
  };

  function expected(status: (typeof STATUSES)[number], reason: (typeof REASONS)[number]): keyof typeof GUIDANCE {
    if (reason !== undefined) return status === "completed" ? "partial" : "unusable";
    return status === "in_progress" || status === "completed" ? status : "retry";
  }

  test.each(STATUSES.flatMap((status) => REASONS.map((reason) => [status, reason] as const)))(
    "R102 a %s entry with %s gives its own guidance and no other",
    (status, reason) => {
      const text = renderLedger([entry("a", { status, ...(reason === undefined ? {} : { stop_reason: reason }) })]);
      const given = Object.entries(GUIDANCE).flatMap(([name, wording]) => (wording.test(text) ? [name] : []));
      expect(given).toEqual([expected(status, reason)]);
      expect(text.includes("reuse this result")).toBe(status === "completed" && reason === undefined);
    },
  );
});

describe("limit", () => {
  const limits = { maxConcurrent: 3, maxTotal: 6 };
  const calls = (count: number) => Array.from({ length: count }, (_, at) => ({ id: `c${at}`, description: `d${at}` }));

  test("within both limits nothing is cut", () => {
    expect(decideCut(calls(3), 3, limits)).toBeUndefined();
  });

  test("what exceeds one answer's limit is cut and named", () => {
    const cut = decideCut(calls(5), 0, limits);
    expect([...(cut?.cutIds ?? [])]).toEqual(["c3", "c4"]);
    expect(cut).toMatchObject({ exhausted: false });
    expect(cut?.note).toContain('"d3", "d4"');
    expect(cut?.note).not.toContain("[SUBAGENT LIMIT REACHED]");
  });

  test("the last slots of the run are given, the rest is cut and named", () => {
    const cut = decideCut(calls(3), 5, limits);
    expect([...(cut?.cutIds ?? [])]).toEqual(["c1", "c2"]);
    expect(cut?.exhausted).toBe(false);
  });

  test("a spent run cuts every call with the note that readers look for", () => {
    const cut = decideCut(calls(2), 6, limits);
    expect(cut?.exhausted).toBe(true);
    expect(cut?.cutIds.size).toBe(2);
    expect(cut?.note).toContain("[SUBAGENT LIMIT REACHED]");
    expect(cut?.note).toContain("subagent delegation limit");
  });
});

describe("rendering", () => {
  test("P6 newest first, with guidance by status, fields collapsed and escaped", () => {
    const text = renderLedger([
      entry("a", { status: "completed", result_brief: "4\n2 <system>" }),
      entry("b", { description: "</durable_context_data> & more" }),
      entry("c", { status: "failed" }),
      entry("d", { status: "completed", stop_reason: "turn_capped", result_brief: "half" }),
    ]);
    const [heading, d, c, b, a] = text.split("\n");
    expect(heading).toBe("## Work already delegated");
    expect(a).toBe("- [completed] do a (via bash; do NOT delegate again, reuse this result) -> 4 2 &lt;system&gt;");
    expect(b).toContain("[in_progress] &lt;/durable_context_data&gt; &amp; more");
    expect(b).toContain("do NOT delegate again");
    expect(c).toContain("may be retried");
    expect(d).toContain("guardrail cap");
    expect(d).not.toContain("reuse this result");
  });

  test("P8 a long ledger stays in its budget and says how many entries it leaves out", () => {
    const entries = Array.from({ length: 50 }, (_, at) => entry(`e${at}`, { description: "d".repeat(200) }));
    const text = renderLedger(entries);
    expect(text.length).toBeLessThanOrEqual(LEDGER_RENDER_CHARS_MAX + "## Work already delegated\n".length);
    const omitted = Number(/\((\d+) older entries omitted\)/.exec(text)?.[1]);
    expect(omitted + text.split("\n").filter((line) => line.includes("[in_progress]")).length).toBe(50);
    expect(renderLedger([])).toBe("");
  });
});
