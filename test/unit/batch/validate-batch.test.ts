import { describe, expect, it } from "vitest";
import type { BatchLimits } from "../../../src/domain/batch/batch-limits.ts";
import { validateBatch, type BatchDraft } from "../../../src/domain/batch/validate-batch.ts";

const LIMITS: BatchLimits = {
  maxItems: 5,
  defaultLiveItems: 100,
  maxLiveItems: 1_000,
  defaultRunningItems: 3,
  maxRunningItems: 64,
  defaultAttempts: 3,
};

const draft = (over: Partial<BatchDraft> = {}): BatchDraft => ({
  title: "Numbers",
  subagentType: "bash",
  items: [
    { key: "a", prompt: "one" },
    { key: "b", prompt: "two" },
  ],
  ...over,
});

const validate = (over: Partial<BatchDraft>, agentTimeout = 1_800) => validateBatch(draft(over), LIMITS, agentTimeout);

describe("validateBatch", () => {
  it("R43 R52: resolves windows from configuration and the item's budget as min(agent timeout, 780 s)", () => {
    expect(validate({})).toEqual({
      ok: true,
      value: {
        ...draft(),
        files: [],
        maxLiveItems: 100,
        maxRunningItems: 3,
        maxAttempts: 3,
        timeoutSeconds: 780,
      },
    });
    expect(validate({}, 300)).toMatchObject({ ok: true, value: { timeoutSeconds: 300 } });
    expect(validate({ timeoutSeconds: 10 }, 300)).toMatchObject({ ok: true, value: { timeoutSeconds: 10 } });
    expect(validate({ maxLiveItems: 2 })).toMatchObject({ ok: true, value: { maxLiveItems: 2, maxRunningItems: 2 } });
    expect(validate({ maxRunningItems: 64 })).toMatchObject({ ok: true, value: { maxRunningItems: 64 } });
  });

  it("R158 an item whose attempt may not be repeated has one, and a request for more is refused", () => {
    const once = { ...LIMITS, defaultAttempts: 1, maxAttempts: 1 };
    expect(validateBatch(draft(), once, 60)).toMatchObject({ ok: true, value: { maxAttempts: 1 } });
    expect(validateBatch(draft({ maxAttempts: 1 }), once, 60)).toMatchObject({ ok: true });
    const refused = validateBatch(draft({ maxAttempts: 2 }), once, 60);
    expect(refused).toMatchObject({
      ok: false,
      error: { field: "max_attempts", message: "max_attempts is 2, the range is 1 to 1" },
    });
  });

  const long = (length: number) => "x".repeat(length);
  const violations: [string, Partial<BatchDraft>, string, RegExp][] = [
    ["no items", { items: [] }, "items", /at least 1/],
    [
      "too many items",
      { items: Array.from({ length: 6 }, (_, i) => ({ key: `${i}`, prompt: "p" })) },
      "items",
      /6.*limit is 5/,
    ],
    ["a blank title", { title: "  " }, "title", /empty/],
    ["a title of 257", { title: long(257) }, "title", /257.*256/],
    ["a key of 129", { items: [{ key: long(129), prompt: "p" }] }, "items[0].key", /129.*128/],
    ["a blank key", { items: [{ key: " ", prompt: "p" }] }, "items[0].key", /empty/],
    [
      "a prompt of 100,001",
      { items: [{ key: "big", prompt: long(100_001) }] },
      "items[0].prompt",
      /"big".*limit is 100000/,
    ],
    ["a blank prompt", { items: [{ key: "k", prompt: " " }] }, "items[0].prompt", /empty.*"k"/],
    [
      "a repeated key",
      {
        items: [
          { key: "a", prompt: "p" },
          { key: " a ", prompt: "q" },
        ],
      },
      "items[1].key",
      /"a" repeats the key of items\[0\]/,
    ],
    ["half a surrogate pair", { items: [{ key: "k", prompt: "a\ud83d" }] }, "items[0].prompt", /well-formed/],
    ["101 files", { files: Array.from({ length: 101 }, (_, i) => `/workspace/${i}`) }, "files", /101.*100/],
    ["a file named twice", { files: ["/workspace/a", "/workspace/a"] }, "files", /twice/],
    ["an explicit 0 live", { maxLiveItems: 0 }, "max_live_items", /is 0, the range is 1 to 1000/],
    ["too many live", { maxLiveItems: 1_001 }, "max_live_items", /1001.*1000/],
    ["an explicit 0 running", { maxRunningItems: 0 }, "max_running_items", /is 0/],
    ["too many running", { maxRunningItems: 65 }, "max_running_items", /65.*64/],
    ["running above live", { maxLiveItems: 2, maxRunningItems: 3 }, "max_running_items", /more than max_live_items 2/],
    ["an explicit 0 attempts", { maxAttempts: 0 }, "max_attempts", /is 0/],
    ["11 attempts", { maxAttempts: 11 }, "max_attempts", /11.*10/],
    ["a fraction", { maxRunningItems: 1.5 }, "max_running_items", /1\.5/],
    ["a budget of 781 s", { timeoutSeconds: 781 }, "timeout_seconds", /781.*1 to 780/],
  ];
  it.each(violations)("names the field and the limit of %s", (_, over, field, message) => {
    const refused = validate(over);
    expect(refused).toMatchObject({ ok: false, error: { reason: "batch_limit", field } });
    expect(!refused.ok && refused.error.message).toMatch(message);
  });

  it("R52: a budget longer than the subagent's own timeout is refused, not shortened in silence", () => {
    expect(validate({ timeoutSeconds: 400 }, 300)).toMatchObject({ ok: false, error: { field: "timeout_seconds" } });
  });
});
