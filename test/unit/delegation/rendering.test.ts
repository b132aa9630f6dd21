import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { boundText } from "../../../src/domain/delegation/bounded-text.ts";
import { parseDelegationKwargs, toDelegationKwargs } from "../../../src/domain/delegation/delegation-result.ts";
import { RESULT_CHARS_MAX, toDelegationText } from "../../../src/domain/delegation/delegation-text.ts";
import type { DelegationOutcome } from "../../../src/domain/delegation/delegation-outcome.ts";
import { CODE_POINTS } from "../../../src/domain/shared/cut-text.ts";
import { decideOutcome } from "../../../src/domain/delegation/settle-outcome.ts";

const points = (text: string): number => Array.from(text).length;

describe("bounded text", () => {
  test("keeps two thirds of the head, a marker and the tail", () => {
    expect(boundText("abcdefghijklmnopqrstuvwxyz", 15)).toBe("abcdefghijklmno");
    expect(boundText("abcdefghijklmnopqrstuvwxyz", 21)).toBe("abcdefghijklmn\n...\nyz");
    expect(boundText("abcdefgh", 5)).toBe("abcde");
    expect(boundText("short", 5)).toBe("short");
  });

  test("never exceeds the bound in code points and never splits one", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "é", "漢", "😀", "\n"), maxLength: 80 });
    fc.assert(
      fc.property(text, fc.integer({ min: 0, max: 60 }), (value, max) => {
        const bounded = boundText(value, max);
        expect(points(bounded)).toBeLessThanOrEqual(max);
        expect(bounded.isWellFormed()).toBe(true);
        expect(CODE_POINTS.exceeds(value, max)).toBe(points(value) > max);
        if (points(value) <= max) expect(bounded).toBe(value);
      }),
    );
  });
});

describe("model-visible text", () => {
  test.each<[DelegationOutcome, string]>([
    [{ status: "completed", result: "42" }, "Task Succeeded. Result: 42"],
    [
      { status: "completed", result: "42", stopReason: "turn_capped" },
      "Task Succeeded (capped: turn budget). Result: 42",
    ],
    [
      { status: "completed", result: "42", stopReason: "token_capped" },
      "Task Succeeded (capped: token budget). Result: 42",
    ],
    [{ status: "failed", error: "boom" }, "Task failed. Error: boom"],
    [{ status: "failed", error: "  " }, "Task failed."],
    [
      { status: "failed", error: "boom", stopReason: "loop_capped" },
      "Task failed (capped: repeated tool-call loop). Error: boom",
    ],
    [{ status: "cancelled" }, "Task cancelled by user."],
    [{ status: "cancelled", error: "Cancelled by user" }, "Task cancelled by user. Error: Cancelled by user"],
    [{ status: "timed_out" }, "Task timed out."],
    [{ status: "timed_out", error: "late" }, "Task timed out. Error: late"],
    [{ status: "polling_timed_out" }, "Task polling timed out."],
    [{ status: "polling_timed_out", error: "gave up" }, "gave up"],
  ])("R99 %j", (outcome, text) => {
    expect(toDelegationText(outcome)).toBe(text);
  });

  test("P8 a result longer than 100,000 characters is cut visibly and says where the rest is", () => {
    const text = toDelegationText(
      { status: "completed", result: "x".repeat(RESULT_CHARS_MAX + 1) },
      "/workspace/a.txt",
    );
    expect(points(text)).toBeLessThanOrEqual(RESULT_CHARS_MAX + "Task Succeeded. Result: ".length);
    expect(text).toContain("[Result cut:");
    expect(text).toContain("/workspace/a.txt");
  });
});

describe("result metadata", () => {
  const usage = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };

  test("R101 a status or stop reason outside the contract throws at the producer", () => {
    const invented = { status: "max_turns_reached" } as unknown as DelegationOutcome;
    expect(() => toDelegationKwargs(invented)).toThrow(/max_turns_reached/);
    const reason = { status: "failed", stopReason: "bored" } as unknown as DelegationOutcome;
    expect(() => toDelegationKwargs(reason)).toThrow(/bored/);
  });

  test("R100 keys appear exactly when they mean something", () => {
    const completed = { status: "completed", result: "  42 \n", usage, modelName: " gpt ", error: "ignored" } as const;
    expect(toDelegationKwargs(completed, "f".repeat(64))).toEqual({
      subagent_status: "completed",
      subagent_result_brief: "42",
      subagent_result_sha256: "f".repeat(64),
      subagent_model_name: "gpt",
      subagent_token_usage: usage,
    });
    expect(toDelegationKwargs({ status: "failed", error: " boom ", result: "partial" })).toEqual({
      subagent_status: "failed",
      subagent_error: "boom",
    });
    expect(toDelegationKwargs({ status: "failed", error: "full", errorCode: "admission_queue_full" })).toEqual({
      subagent_status: "failed",
      subagent_error: "full",
      subagent_error_code: "admission_queue_full",
    });
    expect(toDelegationKwargs({ status: "completed", result: " " })).toEqual({ subagent_status: "completed" });
    expect(
      points(String(toDelegationKwargs({ status: "completed", result: "y".repeat(9_000) }).subagent_result_brief)),
    ).toBe(2_000);
  });

  test.each(["token_capped", "turn_capped", "loop_capped"] as const)(
    "R100 %s stands beside the normal status",
    (stopReason) => {
      expect(toDelegationKwargs({ status: "completed", result: "some", stopReason })).toEqual({
        subagent_status: "completed",
        subagent_result_brief: "some",
        subagent_stop_reason: stopReason,
      });
      expect(toDelegationKwargs({ status: "failed", error: "none", stopReason })).toEqual({
        subagent_status: "failed",
        subagent_error: "none",
        subagent_stop_reason: stopReason,
      });
    },
  );

  test("R63 usage with a missing, negative or fractional count is dropped whole", () => {
    for (const bad of [{ ...usage, total_tokens: -1 }, { ...usage, input_tokens: 0.5 }, { input_tokens: 1 }, null]) {
      const outcome = { status: "completed", result: "x", usage: bad } as unknown as DelegationOutcome;
      expect(toDelegationKwargs(outcome)).not.toHaveProperty("subagent_token_usage");
    }
  });

  test("R103 reading tolerates older writers and bad values", () => {
    expect(parseDelegationKwargs({})).toBeUndefined();
    expect(parseDelegationKwargs({ subagent_status: "running" })).toBeUndefined();
    expect(parseDelegationKwargs({ subagent_status: "max_turns_reached" })).toEqual({
      status: "failed",
      stopReason: "turn_capped",
    });
    const legacy = { subagent_status: "max_turns_reached", subagent_result_brief: "some" };
    expect(parseDelegationKwargs(legacy)).toEqual({
      status: "completed",
      stopReason: "turn_capped",
      resultBrief: "some",
    });
    expect(parseDelegationKwargs({ ...legacy, subagent_stop_reason: "loop_capped" })?.stopReason).toBe("loop_capped");
    const badSha = { subagent_status: "completed", subagent_result_brief: "b", subagent_result_sha256: "XYZ" };
    expect(parseDelegationKwargs(badSha)).toEqual({ status: "completed", resultBrief: "b" });
    expect(parseDelegationKwargs({ subagent_status: "polling_timed_out" })?.status).toBe("polling_timed_out");
  });
});

describe("R147 stop reasons map once", () => {
  test.each([
    ["completed", "text", { status: "completed" }],
    ["completed", " ", { status: "failed", error: "No response generated" }],
    ["aborted", "text", { status: "cancelled" }],
    ["error", "text", { status: "failed" }],
    ["max-tokens", "text", { status: "completed", stopReason: "token_capped" }],
    ["max-tokens", "", { status: "failed", stopReason: "token_capped" }],
    ["max-turns", "text", { status: "completed", stopReason: "turn_capped" }],
    ["max-turns", "", { status: "failed", stopReason: "turn_capped", error: "Reached max_turns=7" }],
    ["refusal", "text", { status: "failed" }],
    ["something-new", "text", { status: "failed" }],
  ])("P5 R96 R97 R98 R147 %s with text %j", (stopReason, text, expected) => {
    expect(decideOutcome({ stopReason, text }, 7)).toMatchObject(expected);
  });
});
